"""PyTorch's programs: graphs of core ATen as networks, the backend of torch.compile, and reports of what it takes."""

from .backend import backend as backend
from .explain import explain as explain
from .optimize import optimize as optimize
from .options import TorchOptions as TorchOptions
