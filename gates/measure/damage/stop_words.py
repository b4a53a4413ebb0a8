"""English function words: what names no scene and is no name."""

from __future__ import annotations

STOP_WORDS = frozenset(
    """
    a about above across after again against ain't all almost along already also although always am among an and
    another any anybody anyone anything are aren't around as at away be because been before behind being below beneath
    beside besides between beyond both but by can can't cannot could couldn't did didn't do does doesn't doing don't
    done down during each either else enough even ever every everybody everyone everything except few for from further
    had hadn't has hasn't have haven't having he he'd he'll he's her here here's hers herself him himself his how how's
    however i i'd i'll i'm i've if in indeed into is isn't it it'd it'll it's its itself just least less let let's like
    many may maybe me might mightn't mine more most much must mustn't my myself near neither never no nobody none nor
    not nothing now of off often on once one ones only onto or other others otherwise ought our ours ourselves out over
    own per perhaps quite rather same shall shan't she she'd she'll she's should shouldn't since so some somebody
    someone something sometimes soon still such than that that's the their theirs them themselves then there there's
    therefore these they they'd they'll they're they've this those though through throughout thus till to together too
    toward towards under until up upon us very was wasn't we we'd we'll we're we've were weren't what what's whatever
    when when's whenever where where's wherever whether which while who who's whoever whom whose why why's will with
    within without won't would wouldn't yet you you'd you'll you're you've your yours yourself yourselves
    """.split()  # noqa: SIM905 - a list literal of one quoted word a line is no list a person can check
)
"""English function words that name no scene: `function-words@1`. Any change to the list is a new version."""
