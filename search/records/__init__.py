"""Records of measurements: their lines, their files, the workloads beside them, and the best of them."""

from .file import append as append
from .file import distill as distill
from .file import load as load
from .file import merge as merge
from .file import stats as stats
from .record import ErrorCode as ErrorCode
from .record import Record as Record
from .record import RecordError as RecordError
