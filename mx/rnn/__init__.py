"""`mx.rnn`: recurrent cells, their unrolling over time, and sentences in buckets of equal length."""

from .cells import BaseRNNCell, GRUCell, LSTMCell, RNNCell, RNNParams
from .checkpoints import do_rnn_checkpoint, load_rnn_checkpoint, save_rnn_checkpoint
from .fused import FusedRNNCell
from .modifiers import DropoutCell, ModifierCell, ResidualCell, ZoneoutCell
from .sentences import BucketSentenceIter, encode_sentences
from .stacks import BidirectionalCell, SequentialRNNCell

__all__ = [
    "BaseRNNCell",
    "BidirectionalCell",
    "BucketSentenceIter",
    "DropoutCell",
    "FusedRNNCell",
    "GRUCell",
    "LSTMCell",
    "ModifierCell",
    "RNNCell",
    "RNNParams",
    "ResidualCell",
    "SequentialRNNCell",
    "ZoneoutCell",
    "do_rnn_checkpoint",
    "encode_sentences",
    "load_rnn_checkpoint",
    "save_rnn_checkpoint",
]
