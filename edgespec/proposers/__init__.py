"""Guesses at what comes next."""

from edgespec.proposers.base import Proposer
from edgespec.proposers.model import ModelProposer
from edgespec.proposers.ngram import NgramProposer
from edgespec.proposers.recycling import RecyclingProposer
from edgespec.proposers.suffix import SuffixProposer

__all__ = ["ModelProposer", "NgramProposer", "Proposer", "RecyclingProposer", "SuffixProposer"]
