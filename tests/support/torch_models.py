"""Small models in plain PyTorch, with the blocks of well-known networks, and inputs for them."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Model = tuple[nn.Module, tuple[Tensor, ...]]


class BasicBlock(nn.Module):
    """A residual block of ResNet-18."""

    def __init__(self, channels: int, made: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(channels, made, 3, stride, 1, bias=False), nn.BatchNorm2d(made), nn.ReLU())
        self.second = nn.Sequential(nn.Conv2d(made, made, 3, 1, 1, bias=False), nn.BatchNorm2d(made))
        self.short = nn.Sequential(nn.Conv2d(channels, made, 1, stride, bias=False), nn.BatchNorm2d(made))

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.second(self.first(x)) + self.short(x))


class InvertedResidual(nn.Module):
    """A block of MobileNet v3: expansion, convolution by channels, squeeze and excitation, projection."""

    def __init__(self, channels: int, hidden: int) -> None:
        super().__init__()
        self.expand = nn.Sequential(nn.Conv2d(channels, hidden, 1, bias=False), nn.BatchNorm2d(hidden), nn.Hardswish())
        self.depthwise = nn.Sequential(
            nn.Conv2d(hidden, hidden, 3, 1, 1, groups=hidden, bias=False), nn.BatchNorm2d(hidden), nn.ReLU6()
        )
        self.squeeze, self.excite = nn.Conv2d(hidden, 4, 1), nn.Conv2d(4, hidden, 1)
        self.project = nn.Sequential(nn.Conv2d(hidden, channels, 1, bias=False), nn.BatchNorm2d(channels))

    def forward(self, x: Tensor) -> Tensor:
        y = self.depthwise(self.expand(x))
        scale = F.hardsigmoid(self.excite(F.relu(self.squeeze(F.adaptive_avg_pool2d(y, 1)))))
        return x + self.project(y * scale)


class GptBlock(nn.Module):
    """Embedded tokens through a block of GPT-2, to logits on the embedding's weights."""

    def __init__(self, width: int = 32, heads: int = 4, words: int = 50) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(16, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down, self.heads = nn.Linear(width, 4 * width), nn.Linear(4 * width, width), heads

    def forward(self, tokens: Tensor) -> Tensor:
        n, length = tokens.shape
        x = self.words(tokens) + self.places(torch.arange(length, device=tokens.device))
        q, k, v = (
            part.view(n, length, self.heads, -1).transpose(1, 2) for part in self.qkv(self.norm1(x)).chunk(3, dim=-1)
        )
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(x.shape)
        x = x + self.out(attended)
        x = x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))
        return x @ self.words.weight.T


class LstmByHand(nn.Module):
    """An LSTM written as a loop over time."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.given, self.kept = nn.Linear(width, 4 * width), nn.Linear(width, 4 * width)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        h = c = torch.zeros(x.shape[0], x.shape[2], device=x.device)
        states = []
        for step in x.unbind(1):
            i, f, g, o = (self.given(step) + self.kept(h)).chunk(4, dim=-1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            states.append(h)
        return torch.stack(states, dim=1), c


class UNet(nn.Module):
    """One level down, one up by a transposed convolution, with GroupNorm."""

    def __init__(self) -> None:
        super().__init__()
        self.inside = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.SiLU())
        self.below = nn.Sequential(nn.Conv2d(8, 16, 3, padding=1), nn.GroupNorm(4, 16), nn.SiLU())
        self.up, self.last = nn.ConvTranspose2d(16, 8, 2, 2), nn.Conv2d(16, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        wide = self.inside(x)
        low = self.below(F.max_pool2d(wide, 2))
        return self.last(torch.cat([wide, self.up(low)], dim=1))


def _resnet() -> Model:
    stem = nn.Sequential(nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
    head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10))
    return nn.Sequential(stem, BasicBlock(8, 16, 2), head), (torch.randn(2, 3, 32, 32),)


def _encoder() -> Model:
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
    return nn.TransformerEncoder(layer, 1, enable_nested_tensor=False), (torch.randn(2, 6, 32),)


def _conv1d() -> Model:
    stack = nn.Sequential(nn.Conv1d(1, 8, 16, 4), nn.BatchNorm1d(8), nn.ReLU(), nn.AvgPool1d(4), nn.Conv1d(8, 4, 3))
    return stack, (torch.randn(2, 1, 128),)


def _conv3d() -> Model:
    stack = nn.Sequential(nn.Conv3d(2, 4, 3, padding=1), nn.BatchNorm3d(4), nn.ReLU(), nn.MaxPool3d(2))
    return stack, (torch.randn(1, 2, 4, 8, 8),)


def _mlp() -> Model:
    return nn.Sequential(nn.Linear(12, 24), nn.GELU(), nn.LayerNorm(24), nn.Linear(24, 5)), (torch.randn(4, 12),)


_MAKERS: dict[str, Callable[[], Model]] = {
    "mlp": _mlp,
    "resnet": _resnet,
    "mobilenet": lambda: (InvertedResidual(8, 16), (torch.randn(1, 8, 14, 14),)),
    "encoder": _encoder,
    "gpt": lambda: (GptBlock(), (torch.randint(0, 50, (2, 7)),)),
    "lstm": lambda: (LstmByHand(), (torch.randn(2, 5, 8),)),
    "unet": lambda: (UNet(), (torch.randn(1, 3, 16, 16),)),
    "conv1d": _conv1d,
    "conv3d": _conv3d,
}
NAMES = tuple(_MAKERS)


def model(name: str) -> Model:
    """Return a model in eval mode, with statistics that are not those of a new one, and its inputs."""
    torch.manual_seed(len(name))
    made, inputs = _MAKERS[name]()
    for module in made.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            assert module.running_mean is not None and module.running_var is not None
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2)
    return made.eval(), inputs
