"""Networks that nobody here wrote, in plain PyTorch: audio, images, volumes, diffusion, recurrent ones."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from wild_inputs import Builder, Built, floats, tokens


class Demucs1d(nn.Module):
    """Demucs on a waveform: strided convolutions with gated linear units down, transposed ones up, with skips."""

    def __init__(self, channels: int = 16, depth: int = 4) -> None:
        super().__init__()
        self.down, self.up, given = nn.ModuleList(), nn.ModuleList(), 2
        for k in range(depth):
            made = channels * 2**k
            self.down.append(
                nn.Sequential(nn.Conv1d(given, made, 8, 4), nn.ReLU(), nn.Conv1d(made, 2 * made, 1), nn.GLU(1))
            )
            last = nn.Identity() if k == 0 else nn.ReLU()
            up = [nn.Conv1d(made, 2 * made, 3, padding=1), nn.GLU(1), nn.ConvTranspose1d(made, given, 8, 4), last]
            self.up.insert(0, nn.Sequential(*up))
            given = made

    def forward(self, x: Tensor) -> Tensor:
        skips = []
        for layer in self.down:
            x = layer(x)
            skips.append(x)
        for layer in self.up:
            skip = skips.pop()
            x = layer(x[..., : skip.shape[-1]] + skip)
        return x


class M5(nn.Module):
    """M5 on raw audio (Dai et al., 2017)."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for given, made, kernel, stride in ((1, 32, 80, 16), (32, 32, 3, 1), (32, 64, 3, 1), (64, 64, 3, 1)):
            layers += [nn.Conv1d(given, made, kernel, stride), nn.BatchNorm1d(made), nn.ReLU(), nn.MaxPool1d(4)]
        self.layers, self.head = nn.Sequential(*layers), nn.Linear(64, 35)

    def forward(self, x: Tensor) -> Tensor:
        x = self.layers(x)
        return F.log_softmax(self.head(F.avg_pool1d(x, x.shape[-1]).permute(0, 2, 1)), dim=2)


class WaveNet(nn.Module):
    """Stacks of dilated causal convolutions with gates, residual and skip connections."""

    def __init__(self, channels: int = 32, dilations: Sequence[int] = (1, 2, 4, 8, 16, 32)) -> None:
        super().__init__()
        self.first, self.dilations = nn.Conv1d(1, channels, 1), tuple(dilations)
        self.gates = nn.ModuleList(nn.Conv1d(channels, 2 * channels, 2, dilation=d) for d in dilations)
        self.mixes = nn.ModuleList(nn.Conv1d(channels, 2 * channels, 1) for _ in dilations)
        self.last = nn.Sequential(nn.ReLU(), nn.Conv1d(channels, channels, 1), nn.ReLU(), nn.Conv1d(channels, 64, 1))

    def forward(self, x: Tensor) -> Tensor:
        x, total = self.first(x), 0
        for d, gate, mix in zip(self.dilations, self.gates, self.mixes, strict=True):
            signal, gating = gate(F.pad(x, (d, 0))).chunk(2, 1)
            skip, rest = mix(torch.tanh(signal) * torch.sigmoid(gating)).chunk(2, 1)
            x, total = x + rest, total + skip
        return self.last(total)


class StftCnn(nn.Module):
    """A convolutional network on the logarithm of a spectrogram."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(400))
        layers: list[nn.Module] = []
        for given, made in ((1, 16), (16, 32), (32, 64)):
            layers += [nn.Conv2d(given, made, 3, 2, 1), nn.BatchNorm2d(made), nn.ReLU()]
        self.layers, self.head = nn.Sequential(*layers), nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        found = torch.stft(x, 400, 160, window=self.window, return_complex=True)
        power = torch.log(torch.view_as_real(found).square().sum(-1) + 1e-6)
        return self.head(self.layers(power[:, None]).mean((2, 3)))


class Espcn(nn.Module):
    """Super-resolution by sub-pixel convolution (Shi et al., 2016)."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 64, 5, 1, 2), nn.Tanh(), nn.Conv2d(64, 32, 3, 1, 1), nn.Tanh(), nn.Conv2d(32, 9, 3, 1, 1)
        )

    def forward(self, x: Tensor) -> Tensor:
        return torch.sigmoid(F.pixel_shuffle(self.layers(x), 3))


class LstmCells(nn.Module):
    """Cells of an LSTM in a loop over time."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self.cell, self.head, self.steps = nn.LSTMCell(64, 64), nn.Linear(64, 10), steps

    def forward(self, x: Tensor) -> Tensor:
        h = c = x.new_zeros(x.shape[1], 64)
        for k in range(self.steps):
            h, c = self.cell(x[k], (h, c))
        return self.head(h)


class Recurrent(nn.Module):
    """Embedded tokens through a recurrent network of PyTorch's, to logits."""

    def __init__(self, kind: type[nn.RNNBase], layers: int, bidirectional: bool = False) -> None:
        super().__init__()
        self.words = nn.Embedding(1000, 128)
        self.body = kind(128, 128, layers, batch_first=True, bidirectional=bidirectional)
        self.head = nn.Linear(256 if bidirectional else 128, 50)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.body(self.words(tokens))[0])


class Stn(nn.Module):
    """A spatial transformer: an affine grid that the image says, sampled, before a classifier (Jaderberg, 2015)."""

    def __init__(self, pixels: int) -> None:
        super().__init__()
        self.look = nn.Sequential(
            nn.Conv2d(1, 8, 7), nn.MaxPool2d(2), nn.ReLU(), nn.Conv2d(8, 10, 5), nn.MaxPool2d(2), nn.ReLU()
        )
        side = ((pixels - 6) // 2 - 4) // 2
        self.where = nn.Sequential(nn.Flatten(), nn.Linear(10 * side**2, 32), nn.ReLU(), nn.Linear(32, 6))
        self.body = nn.Sequential(nn.Conv2d(1, 10, 5), nn.MaxPool2d(2), nn.ReLU(), nn.Conv2d(10, 20, 5), nn.Flatten())
        self.head = nn.Linear(20 * ((pixels - 4) // 2 - 4) ** 2, 10)

    def forward(self, x: Tensor) -> Tensor:
        theta = self.where(self.look(x)).view(-1, 2, 3)
        x = F.grid_sample(x, F.affine_grid(theta, list(x.shape), align_corners=False), align_corners=False)
        return F.log_softmax(self.head(self.body(x)), dim=1)


class UNet3d(nn.Module):
    """A U-Net on volumes, with instance normalisation."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()

        def block(given: int, made: int) -> nn.Module:
            norm = nn.InstanceNorm3d(made, affine=True)
            return nn.Sequential(nn.Conv3d(given, made, 3, padding=1), norm, nn.LeakyReLU(0.01))

        self.first, self.second, self.third = block(1, width), block(width, 2 * width), block(2 * width, 4 * width)
        self.up2, self.up1 = (
            nn.ConvTranspose3d(4 * width, 2 * width, 2, 2),
            nn.ConvTranspose3d(2 * width, width, 2, 2),
        )
        self.back2, self.back1 = block(4 * width, 2 * width), block(2 * width, width)
        self.head = nn.Conv3d(width, 3, 1)

    def forward(self, x: Tensor) -> Tensor:
        a = self.first(x)
        b = self.second(F.max_pool3d(a, 2))
        c = self.third(F.max_pool3d(b, 2))
        b = self.back2(torch.cat([self.up2(c), b], 1))
        return self.head(self.back1(torch.cat([self.up1(b), a], 1)))


class DiffusionUNet(nn.Module):
    """A U-Net of a diffusion model: residual blocks with group norm and the step's embedding, attention, skips."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.width = width
        self.time = nn.Sequential(nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, 4 * width))
        self.first, self.last = nn.Conv2d(3, width, 3, padding=1), nn.Conv2d(width, 3, 3, padding=1)
        self.down1, self.down2 = _Residual(width, width), _Residual(width, 2 * width)
        self.middle1, self.attention, self.middle2 = (
            _Residual(2 * width, 2 * width),
            _SelfAttention(2 * width),
            _Residual(2 * width, 2 * width),
        )
        self.up2, self.up1 = _Residual(4 * width, width), _Residual(2 * width, width)
        self.norm = nn.GroupNorm(8, width)

    def forward(self, x: Tensor, step: Tensor) -> Tensor:
        half = self.width // 2
        rates = torch.exp(torch.arange(half, device=x.device) * (-9.2 / half))
        angles = step[:, None] * rates[None]
        t = self.time(torch.cat([angles.sin(), angles.cos()], -1))
        x = self.first(x)
        a = self.down1(x, t)
        b = self.down2(F.avg_pool2d(a, 2), t)
        c = self.middle2(self.attention(self.middle1(F.avg_pool2d(b, 2), t)), t)
        c = self.up2(torch.cat([F.interpolate(c, scale_factor=2), b], 1), t)
        c = self.up1(torch.cat([F.interpolate(c, scale_factor=2), a], 1), t)
        return self.last(F.silu(self.norm(c)))


class _Residual(nn.Module):
    def __init__(self, given: int, made: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(8, given), nn.GroupNorm(8, made)
        self.conv1, self.conv2 = nn.Conv2d(given, made, 3, padding=1), nn.Conv2d(made, made, 3, padding=1)
        self.time = nn.Linear(128, made)
        self.short = nn.Conv2d(given, made, 1) if given != made else nn.Identity()

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        y = self.conv1(F.silu(self.norm1(x))) + self.time(F.silu(t))[:, :, None, None]
        return self.conv2(F.silu(self.norm2(y))) + self.short(x)


class _SelfAttention(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.qkv, self.out = (
            nn.GroupNorm(8, width),
            nn.Conv2d(width, 3 * width, 1),
            nn.Conv2d(width, width, 1),
        )

    def forward(self, x: Tensor) -> Tensor:
        n, c, h, w = x.shape
        q, k, v = self.qkv(self.norm(x)).view(n, 3, c, h * w).transpose(2, 3).unbind(1)
        return x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(x.shape))


class Yolov5(nn.Module):
    """YOLOv5's blocks: CSP bottlenecks, spatial pyramid pooling, a feature pyramid, and heads with a decoded grid."""

    def __init__(self, width: int = 16, classes: int = 20) -> None:
        super().__init__()
        w = width
        self.stem, self.outputs = (
            nn.Sequential(_conv(3, w, 6, 2, 2), _conv(w, 2 * w, 3, 2), _Csp(2 * w, 2 * w)),
            classes + 5,
        )
        self.p3 = nn.Sequential(_conv(2 * w, 4 * w, 3, 2), _Csp(4 * w, 4 * w))
        self.p4 = nn.Sequential(_conv(4 * w, 8 * w, 3, 2), _Csp(8 * w, 8 * w))
        self.p5, self.join = _conv(8 * w, 16 * w, 3, 2), _conv(32 * w, 16 * w, 1)
        self.squeeze = _conv(16 * w, 8 * w, 1)
        self.up4, self.heads = (
            _Csp(16 * w, 4 * w, False),
            nn.ModuleList(nn.Conv2d(c, 3 * self.outputs, 1) for c in (8 * w, 4 * w, 16 * w)),
        )
        self.up3 = _Csp(8 * w, 8 * w, False)

    def forward(self, x: Tensor) -> Tensor:
        p3 = self.p3(self.stem(x))
        p4 = self.p4(p3)
        p5 = self.p5(p4)
        pools = [p5]
        for _ in range(3):
            pools.append(F.max_pool2d(pools[-1], 5, 1, 2))
        p5 = self.join(F.interpolate(torch.cat(pools[:2], 1), scale_factor=1.0)) + pools[2] * pools[3]
        n4 = self.up4(torch.cat([F.interpolate(self.squeeze(p5), scale_factor=2), p4], 1))
        n3 = self.up3(torch.cat([F.interpolate(n4, scale_factor=2), p3], 1))
        return torch.cat([self._decoded(h, f) for h, f in zip(self.heads, (n3, n4, p5), strict=True)], 1)

    def _decoded(self, head: nn.Module, x: Tensor) -> Tensor:
        n, _, h, w = x.shape
        y = head(x).view(n, 3, self.outputs, h, w).permute(0, 1, 3, 4, 2).sigmoid()
        rows, columns = torch.meshgrid(
            torch.arange(h, device=x.device), torch.arange(w, device=x.device), indexing="ij"
        )
        grid = torch.stack((columns, rows), 2).view(1, 1, h, w, 2).float()
        xy, wh, rest = y.split((2, 2, self.outputs - 4), 4)
        return torch.cat(((xy * 2 - 0.5 + grid) * 8, (wh * 2) ** 2 * 4, rest), 4).view(n, -1, self.outputs)


def _conv(given: int, made: int, kernel: int, stride: int = 1, padding: int | None = None) -> nn.Module:
    pads = kernel // 2 if padding is None else padding
    return nn.Sequential(nn.Conv2d(given, made, kernel, stride, pads, bias=False), nn.BatchNorm2d(made), nn.SiLU())


class _Csp(nn.Module):
    def __init__(self, given: int, made: int, shortcut: bool = True) -> None:
        super().__init__()
        half = made // 2
        self.a, self.b, self.out = _conv(given, half, 1), _conv(given, half, 1), _conv(made, made, 1)
        self.inner, self.shortcut = nn.Sequential(_conv(half, half, 1), _conv(half, half, 3)), shortcut

    def forward(self, x: Tensor) -> Tensor:
        y = self.a(x)
        z = self.inner(y)
        return self.out(torch.cat((y + z if self.shortcut else z, self.b(x)), 1))


class MobileNetV1(nn.Sequential):
    """MobileNet, as the paper's table 1 has it (arXiv:1704.04861)."""

    SEPARABLE = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *((512, 1),) * 5, (1024, 2), (1024, 1))

    def __init__(self) -> None:
        layers, width = self._layers(3, 32, 3, 2), 32
        for channels, stride in self.SEPARABLE:
            layers += [*self._layers(width, width, 3, stride, width), *self._layers(width, channels, 1)]
            width = channels
        super().__init__(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 1000))

    @staticmethod
    def _layers(given: int, made: int, window: int, stride: int = 1, groups: int = 1) -> list[nn.Module]:
        convolution = nn.Conv2d(given, made, window, stride, window // 2, groups=groups, bias=False)
        return [convolution, nn.BatchNorm2d(made), nn.ReLU()]


def _audio(model: nn.Module, *shape: int) -> Built:
    return model, (floats(*shape),)


def _mlp(small: bool) -> Built:
    layers: list[nn.Module] = []
    for given, made in ((784, 512), (512, 512), (512, 256), (256, 10)):
        layers += [nn.Linear(given, made), nn.ReLU()]
    return nn.Sequential(*layers[:-1]), (floats(8 if small else 64, 784),)


def _encoder(small: bool) -> Built:
    layer = nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True)
    return nn.TransformerEncoder(layer, 2 if small else 4), (floats(2, 32 if small else 64, 256),)


def _recurrent(kind: type[nn.RNNBase], layers: int, bidirectional: bool = False) -> Builder:
    return lambda small: (Recurrent(kind, layers, bidirectional), (tokens(1000, 4, 8 if small else 32),))


PLAIN: dict[str, Builder] = {
    "audio_demucs1d": lambda small: _audio(Demucs1d(), 1, 2, 1364 if small else 8532),
    "audio_m5_conv1d": lambda small: _audio(M5(), 2, 1, 8000 if small else 16000),
    "audio_stft_cnn": lambda small: _audio(StftCnn(), 2, 4000 if small else 16000),
    "audio_wavenet": lambda small: _audio(WaveNet(), 1, 1, 256 if small else 4096),
    "espcn_superres": lambda small: (Espcn(), (floats(1, 1, 24 if small else 64, 24 if small else 64),)),
    "lstm_cell_loop": lambda small: (LstmCells(6 if small else 16), (floats(6 if small else 16, 2, 64),)),
    "mlp": _mlp,
    "mobilenet_v1": lambda small: (MobileNetV1(), (floats(1, 3, *[64 if small else 224] * 2),)),
    "nn_transformer_encoder": _encoder,
    "rnn_bilstm": _recurrent(nn.LSTM, 1, True),
    "rnn_gru": _recurrent(nn.GRU, 1),
    "rnn_lstm": _recurrent(nn.LSTM, 2),
    "stn_gridsample": lambda small: (Stn(28 if small else 64), (floats(4, 1, *[28 if small else 64] * 2),)),
    "unet3d": lambda small: (UNet3d(), (floats(1, 1, *[16 if small else 32] * 3),)),
    "unet_diffusion": lambda small: (
        DiffusionUNet(),
        (floats(1, 3, *[16 if small else 32] * 2), torch.tensor([7.0])),
    ),
    "yolov5_like": lambda small: (Yolov5(), (floats(1, 3, *[64 if small else 256] * 2),)),
}
