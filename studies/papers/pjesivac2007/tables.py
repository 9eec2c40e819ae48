"""What Pješivac-Grbović et al. 2007 publish and simulation can test: table 5, and the claims of section 6.

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
    """What the paper says and where; `reason` explains why simulation disagrees, if it does; 'open': none is known."""

    where: str
    published: str
    reason: str = "open"

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

CLAIMS = {
    "hockney-beta": Claim("6.2", "beyond 100 KB Hockney's beta is constant"),
    "plogp-overheads": Claim(
        "6.2, figure 1",
        "PLogP's overheads do not grow evenly with the message",
        _STRAIGHT + "; only the protocol changes",
    ),
    "barrier-hockney": Claim("6.2, figure 2", "Hockney largely overestimates the flat tree"),
    "barrier-slower": Claim("6.2, figure 2", "the flat tree takes slightly longer than Bruck and recursive doubling"),
    "barrier-slope": Claim("6.2, figure 2", "the flat tree's time grows more slowly above about 16 nodes", _GAP),
    "barrier-order": Claim(
        "6.2, figure 2",
        "the models capture the relative performance of the three barriers",
        "on few processes Hockney's printed (P - 1) alpha has one alpha too few for the flat tree, and the fitted gap, "
        "with a receive overhead in it, makes LogGP's rounds longer than they are",
    ),
    "barrier-best-case": Claim(
        "6.2",
        "the flat tree is nearer to the best case, in which reports arrive side by side",
        "SMPI charges the root a receive overhead for each report, one after another; the fitted gap has it in it",
    ),
    "reduce-small": Claim("6.2, figure 3", "for small messages unsegmented binomial beats the pipeline"),
    "reduce-large": Claim("6.2, figure 3", "for large messages the segmented pipeline is the best"),
    "reduce-constant": Claim("6.2, figure 3", "the segmented pipeline's time does not depend on P in the end"),
    "reduce-40-ms": Claim("6.2, figure 3", "it takes around 4e4 us, on 8 and on 24 nodes"),
    "reduce-cut-binomial": Claim(
        "6.2, figure 3",
        "segments of 1 KB make the binomial reduction faster",
        "as by the models, each segment adds its overheads; what the paper holds against it, buffers and the TCP "
        "window of 128 KB, is not in the simulation",
    ),
    "reduce-cut-pipeline": Claim("6.2, figure 3", "segments of 1 KB make the pipeline faster"),
    "reduce-never": Claim("6.2, figure 3", "by all models segments never make the binomial reduction faster"),
    "reduce-conditions": Claim(
        "6.2, figure 4",
        "Hockney's and fitted PLogP's conditions for segments never hold, measured PLogP's slightly",
        "g and the overheads are straight lines here that start above 0, so that segments sum to more than the whole",
    ),
    "reduce-order": Claim("6.2, figure 3", "all models capture the order of the unsegmented algorithms"),
    "reduce-bend": Claim(
        "6.2, figure 3", "unsegmented times bend upwards from 1 to 10 KB, binomial's beyond 100 KB, too", _STRAIGHT
    ),
    "reduce-plogp": Claim(
        "6.2, figure 3",
        "PLogP estimates the segmented pipeline best",
        "the fitted gap has a receive overhead in it, and the formula adds a send overhead to it",
    ),
    "alltoall-hockney": Claim(
        "6.2, figure 5",
        "Hockney significantly underestimates the pairwise exchange",
        "open: the paper suspects congestion; on the simulated switch rounds of pairs share no link",
    ),
    "alltoall-others": Claim("6.2, figure 5", "LogGP and PLogP predict it with reasonable accuracy"),
    "best-many": Claim("6.3, figure 6a", "small m, P > 16: unsegmented linear is the best", _GAP),
    "best-few": Claim(
        "6.3, figure 6a",
        "small m, fewer processes: unsegmented binomial",
        "by table 5 a root sends three messages while the first travels, so few are served soonest one by one",
    ),
    "best-1-kb": Claim(
        "6.3, figure 6a",
        "m about 1 KB: any of the unsegmented trees",
        "at 2 KiB trees with two segments are ahead of them already",
    ),
    "best-couple": Claim(
        "6.3, figure 6a",
        "a couple of KB: split-binary by 1 KB",
        "at 2 KiB, with one segment in each half, binary by 1 KiB is ahead",
    ),
    "best-large": Claim(
        "6.3, figure 6a", "large m: segmented pipelines", "with many processes their filling still counts at 128 KiB"
    ),
    "best-switch": Claim("6.3, figure 6a", "for large m the switching points depend on P"),
    "hockney-small": Claim("6.3, figure 6b", "Hockney: binomial for small m at all P"),
    "hockney-10-kb": Claim(
        "6.3, figure 6b", "Hockney: split-binary by 1 KB around 10 KB", "at its edges other methods take over, by P"
    ),
    "hockney-large": Claim("6.3, figure 6b", "Hockney: split-binary or pipeline by 8 KB for larger m"),
    "loggp-small": Claim(
        "6.3, figure 6c",
        "LogGP: unsegmented linear, binomial and binary for small m",
        "as printed, binary has a second gap in every level; with one, as derived, it is picked, too",
    ),
    "loggp-intermediate": Claim("6.3, figure 6c", "LogGP: then split-binary or pipeline by 1 KB"),
    "loggp-large": Claim("6.3, figure 6c", "LogGP: pipeline by 8 KB for really large m"),
    "loggp-early": Claim("6.3, figure 6c", "LogGP switches from 1 to 8 KB earlier than the best does", _LATENCY),
    "plogp-small": Claim(
        "6.3, figure 6d",
        "PLogP: unsegmented binomial for small m",
        "on the fewest processes the gap is small enough against the latency for linear, as in LogGP's published map",
    ),
    "plogp-binary": Claim(
        "6.3, figure 6d",
        "PLogP alone picks binary by 1 KB for intermediate m",
        "open: with overheads below the gap both binary trees take two gaps per segment; split-binary has half of "
        "these",
    ),
    "plogp-large": Claim(
        "6.3, figure 6d",
        "PLogP: then split-binary by 1 KB, pipeline by 1 KB, pipeline by 8 KB",
        "table 2's line for split-binary lacks the exchange of halves, and as printed beats every pipeline",
    ),
    "plogp-early-8": Claim(
        "6.3, figure 6d",
        "PLogP switches from 1 to 8 KB earlier than LogGP",
        "from straight lines both make the same parameters",
    ),
    "plogp-early-chain": Claim(
        "6.3, figure 6d",
        "PLogP switches from split-binary to pipeline earlier than LogGP",
        "as printed it never does: table 2's split-binary lacks the exchange of halves",
    ),
    "penalty-linear": Claim("6.3, figure 7", "small m, P from 16 on: more than 300 %, for not using linear", _GAP),
    "penalty-few": Claim(
        "6.3, figure 7",
        "small m, small P but 5: 0 to 15 % with Hockney and PLogP",
        "in simulation the gaps and the bytes of a row of sends overlap, where the models add them: linear is better",
    ),
    "penalty-intermediate": Claim(
        "6.3, figure 7",
        "m up to 10 KB: 0 to 50 %",
        "in simulation what a process sends to several shares its link evenly, and the first child of a binomial tree "
        "waits for nearly all; by the formulas it waits for one message",
    ),
    "penalty-hockney-worst": Claim(
        "6.3, figure 7",
        "Hockney has the largest penalty there",
        "as printed, Hockney's binary trees serve two children in the bytes of one, so that it leaves the binomial "
        "tree early, which is right here; with the derived formulas its penalty is the largest",
    ),
    "penalty-loggp": Claim("6.3, figure 7", "large m: at most 25 % with LogGP", _LATENCY),
    "penalty-plogp": Claim("6.3, figure 7", "large m: at most 50 % with PLogP"),
    "penalty-hockney-large": Claim(
        "6.3, figure 7", "Hockney's split-binary by 8 KB costs about 30 % against the pipeline by 1 KB", _LATENCY
    ),
}
"""The claims by name. The reason is 'open' where none is known."""
