"""Operators of neural networks."""

from .activation import bias_add as bias_add
from .activation import elu as elu
from .activation import gelu as gelu
from .activation import hard_sigmoid as hard_sigmoid
from .activation import hard_swish as hard_swish
from .activation import leaky_relu as leaky_relu
from .activation import prelu as prelu
from .activation import relu as relu
from .activation import relu6 as relu6
from .activation import silu as silu
from .activation import softplus as softplus
from .conv2d import conv2d_nchw as conv2d_nchw
from .conv2d import conv2d_nhwc as conv2d_nhwc
from .conv3d import conv3d_ncdhw as conv3d_ncdhw
from .conv3d import conv3d_ndhwc as conv3d_ndhwc
from .dense import batch_matmul as batch_matmul
from .dense import dense as dense
from .dense import matmul as matmul
from .depthwise import depthwise_conv2d_nchw as depthwise_conv2d_nchw
from .depthwise import depthwise_conv2d_nhwc as depthwise_conv2d_nhwc
from .pad import pad as pad
