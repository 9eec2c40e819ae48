"""Results of Pješivac-Grbović et al. 2007 that simulation can test: table 5, and the claims of section 6.

"Performance analysis of MPI collective operations", Cluster Computing 10 (2007). The curves of the figures are not
printed as numbers; the text describes what they show.
"""

from __future__ import annotations

from dataclasses import dataclass

from collwise.models.loggp import LogGP

TABLE_5 = {
    "boba": LogGP(30.40e-6, 8.15e-6, 8.15e-6, 8.683e-6, 0.015e-6),
    "frodo": LogGP(61.22e-6, 8.2e-6, 8.2e-6, 23.8e-6, 0.084e-6),
}
"""LogGP of both clusters; the paper has one overhead for sending and receiving."""

REDUCE_SECONDS = 4e-2
"""Section 6.2: the approximate time of the segmented pipeline reduce in figure 3, on 8 and on 24 nodes."""

MOST_SMALL_PERCENT, MOST_INTERMEDIATE_PERCENT, MOST_LOGGP_PERCENT, MOST_PLOGP_PERCENT = 15, 50, 25, 50
SMALL_LINEAR_PERCENT, HOCKNEY_LARGE_PERCENT = 300, 30
"""Section 6.3: penalties in percent of the best method's time."""


@dataclass(frozen=True)
class Claim:
    """A statement of the paper and its place. `reason` explains why simulation disagrees; 'open' if nobody knows."""

    where: str
    published: str
    reason: str

    @property
    def open(self) -> bool:
        """Whether no reason is known."""
        return self.reason.startswith("open")


_GAP = "open: the paper suspects a gap that shrinks with the number of receivers; the simulated one does not"
_STRAIGHT = "the description has table 5's straight lines; of curves between them nothing is published"
_LATENCY = (
    "our chain posts a segment's receive after the one before, so that in simulation each costs a whole message and "
    "not a gap; that favours 8 KiB"
)

_PUBLISHED = {
    "6.2": {
        "hockney-beta": "beyond 100 KB Hockney's beta is constant",
        "barrier-best-case": "the flat tree is nearer to the best case, in which reports arrive side by side",
    },
    "6.2, figure 1": {
        "plogp-overheads": "PLogP's overheads do not grow evenly with the message",
    },
    "6.2, figure 2": {
        "barrier-hockney": "Hockney largely overestimates the flat tree",
        "barrier-slower": "the flat tree takes slightly longer than Bruck and recursive doubling",
        "barrier-slope": "the flat tree's time grows more slowly above about 16 nodes",
        "barrier-order": "the models capture the relative performance of the three barriers",
    },
    "6.2, figure 3": {
        "reduce-small": "for small messages unsegmented binomial beats the pipeline",
        "reduce-large": "for large messages the segmented pipeline is the best",
        "reduce-constant": "the segmented pipeline's time does not depend on P in the end",
        "reduce-40-ms": "it takes around 4e4 us, on 8 and on 24 nodes",
        "reduce-cut-binomial": "segments of 1 KB make the binomial reduction faster",
        "reduce-cut-pipeline": "segments of 1 KB make the pipeline faster",
        "reduce-never": "by all models segments never make the binomial reduction faster",
        "reduce-order": "all models capture the order of the unsegmented algorithms",
        "reduce-bend": "unsegmented times bend upwards from 1 to 10 KB, binomial's beyond 100 KB, too",
        "reduce-plogp": "PLogP estimates the segmented pipeline best",
    },
    "6.2, figure 4": {
        "reduce-conditions": (
            "Hockney's and fitted PLogP's conditions for segments never hold, measured PLogP's slightly"
        ),
    },
    "6.2, figure 5": {
        "alltoall-hockney": "Hockney significantly underestimates the pairwise exchange",
        "alltoall-others": "LogGP and PLogP predict it with reasonable accuracy",
    },
    "6.3, figure 6a": {
        "best-many": "small m, P > 16: unsegmented linear is the best",
        "best-few": "small m, fewer processes: unsegmented binomial",
        "best-1-kb": "m about 1 KB: any of the unsegmented trees",
        "best-couple": "a couple of KB: split-binary by 1 KB",
        "best-large": "large m: segmented pipelines",
        "best-switch": "for large m the switching points depend on P",
    },
    "6.3, figure 6b": {
        "hockney-small": "Hockney: binomial for small m at all P",
        "hockney-10-kb": "Hockney: split-binary by 1 KB around 10 KB",
        "hockney-large": "Hockney: split-binary or pipeline by 8 KB for larger m",
    },
    "6.3, figure 6c": {
        "loggp-small": "LogGP: unsegmented linear, binomial and binary for small m",
        "loggp-intermediate": "LogGP: then split-binary or pipeline by 1 KB",
        "loggp-large": "LogGP: pipeline by 8 KB for really large m",
        "loggp-early": "LogGP switches from 1 to 8 KB earlier than the best does",
    },
    "6.3, figure 6d": {
        "plogp-small": "PLogP: unsegmented binomial for small m",
        "plogp-binary": "PLogP alone picks binary by 1 KB for intermediate m",
        "plogp-large": "PLogP: then split-binary by 1 KB, pipeline by 1 KB, pipeline by 8 KB",
        "plogp-early-8": "PLogP switches from 1 to 8 KB earlier than LogGP",
        "plogp-early-chain": "PLogP switches from split-binary to pipeline earlier than LogGP",
    },
    "6.3, figure 7": {
        "penalty-linear": "small m, P from 16 on: more than 300 %, for not using linear",
        "penalty-few": "small m, small P but 5: 0 to 15 % with Hockney and PLogP",
        "penalty-intermediate": "m up to 10 KB: 0 to 50 %",
        "penalty-hockney-worst": "Hockney has the largest penalty there",
        "penalty-loggp": "large m: at most 25 % with LogGP",
        "penalty-plogp": "large m: at most 50 % with PLogP",
        "penalty-hockney-large": "Hockney's split-binary by 8 KB costs about 30 % against the pipeline by 1 KB",
    },
}
_REASONS = {
    "plogp-overheads": _STRAIGHT + "; only the protocol changes",
    "barrier-slope": _GAP,
    "barrier-order": (
        "on few processes Hockney's printed (P - 1) alpha has one alpha too few for the flat tree, and the fitted gap, "
        "with a receive overhead in it, makes LogGP's rounds longer than they are"
    ),
    "barrier-best-case": (
        "SMPI charges the root a receive overhead for each report, one after another; the fitted gap has it in it"
    ),
    "reduce-cut-binomial": (
        "as by the models, each segment adds its overheads; what the paper holds against it, buffers and the TCP "
        "window of 128 KB, is not in the simulation"
    ),
    "reduce-conditions": (
        "g and the overheads are straight lines here that start above 0, so that segments sum to more than the whole"
    ),
    "reduce-bend": _STRAIGHT,
    "reduce-plogp": "the fitted gap has a receive overhead in it, and the formula adds a send overhead to it",
    "alltoall-hockney": "open: the paper suspects congestion; on the simulated switch rounds of pairs share no link",
    "best-many": _GAP,
    "best-few": "by table 5 a root sends three messages while the first travels, so few are served soonest one by one",
    "best-1-kb": "at 2 KiB trees with two segments are ahead of them already",
    "best-couple": "at 2 KiB, with one segment in each half, binary by 1 KiB is ahead",
    "best-large": "with many processes their filling still counts at 128 KiB",
    "hockney-10-kb": "at its edges other methods take over, by P",
    "loggp-small": "as printed, binary has a second gap in every level; with one, as derived, it is picked, too",
    "loggp-early": _LATENCY,
    "plogp-small": (
        "on the fewest processes the gap is small enough against the latency for linear, as in LogGP's published map"
    ),
    "plogp-binary": (
        "open: with overheads below the gap both binary trees take two gaps per segment; split-binary has half of these"
    ),
    "plogp-large": "table 2's line for split-binary lacks the exchange of halves, and as printed beats every pipeline",
    "plogp-early-8": "from straight lines both make the same parameters",
    "plogp-early-chain": "as printed it never does: table 2's split-binary lacks the exchange of halves",
    "penalty-linear": _GAP,
    "penalty-few": (
        "in simulation the gaps and the bytes of a row of sends overlap, where the models add them: linear is better"
    ),
    "penalty-intermediate": (
        "in simulation what a process sends to several shares its link evenly, and the first child of a binomial tree "
        "waits for nearly all; by the formulas it waits for one message"
    ),
    "penalty-hockney-worst": (
        "as printed, Hockney's binary trees serve two children in the bytes of one, so that it leaves the binomial "
        "tree early, which is right here; with the derived formulas its penalty is the largest"
    ),
    "penalty-loggp": _LATENCY,
    "penalty-hockney-large": _LATENCY,
}
CLAIMS = {
    name: Claim(where, text, _REASONS.get(name, "open"))
    for where, claims in _PUBLISHED.items()
    for name, text in claims.items()
}
"""The claims by name."""
