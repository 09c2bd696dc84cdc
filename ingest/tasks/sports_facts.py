"""Who plays what, and what is done in which sport: the facts that the sentences of `sports` are made of.

Each athlete is known for one sport and each action belongs to one of these sports alone: a sentence is plausible if
they are of the same sport, whatever the athlete's position. Athletes who played two of them as professionals are left
out, and so are actions that two of them share (an offside, a penalty shot, a grand slam). All athletes have two names
and all actions four words, nearly all of which are four tokens to GPT-2 and SmolLM2: sentences about one athlete have
as a rule equally many.
"""

from __future__ import annotations

ATHLETES: dict[str, tuple[str, ...]] = {
    "basketball": (
        "LeBron James", "Stephen Curry", "Kobe Bryant", "Kevin Durant", "Larry Bird", "Magic Johnson", "Tim Duncan",
        "Dwyane Wade",
    ),
    "soccer": (
        "Lionel Messi", "Cristiano Ronaldo", "Wayne Rooney", "David Beckham", "Diego Maradona", "Harry Kane",
        "Gareth Bale", "Frank Lampard",
    ),
    "baseball": (
        "Derek Jeter", "Babe Ruth", "Mike Trout", "Barry Bonds", "Hank Aaron", "Alex Rodriguez", "Willie Mays",
        "Bryce Harper",
    ),
    "american football": (
        "Tom Brady", "Peyton Manning", "Aaron Rodgers", "Joe Montana", "Jerry Rice", "Dan Marino", "Emmitt Smith",
        "Patrick Mahomes",
    ),
    "ice hockey": (
        "Wayne Gretzky", "Sidney Crosby", "Alexander Ovechkin", "Mario Lemieux", "Bobby Orr", "Gordie Howe",
        "Connor McDavid", "Jaromir Jagr",
    ),
    "tennis": (
        "Roger Federer", "Rafael Nadal", "Novak Djokovic", "Serena Williams", "Steffi Graf", "Pete Sampras",
        "Andy Murray", "Maria Sharapova",
    ),
    "golf": (
        "Tiger Woods", "Phil Mickelson", "Rory McIlroy", "Jack Nicklaus", "Arnold Palmer", "Jordan Spieth",
        "Gary Player", "Ernie Els",
    ),
}  # fmt: skip

ACTIONS: dict[str, tuple[str, ...]] = {
    "basketball": (
        "made a free throw", "missed two free throws", "made a jump shot", "made a three pointer",
        "made a hook shot", "grabbed a defensive rebound",
    ),
    "soccer": (
        "took a corner kick", "scored with a header", "took the penalty kick", "got a red card",
        "scored a bicycle kick", "took a goal kick",
    ),
    "baseball": (
        "hit a home run", "stole the second base", "hit a sacrifice fly", "struck out three times",
        "dropped a fly ball", "walked with bases loaded",
    ),
    "american football": (
        "kicked a field goal", "kicked an extra point", "gained a first down", "ran for ten yards",
        "gained ten passing yards", "gained ten rushing yards",
    ),
    "ice hockey": (
        "won a face off", "took a wrist shot", "took a slap shot", "shot the puck wide",
        "fired the puck high", "lost the puck twice",
    ),
    "tennis": (
        "served an early ace", "served a double fault", "returned the second serve", "won the second set",
        "lost the opening set", "saved a match point",
    ),
    "golf": (
        "hit a nine iron", "hit a five iron", "used a sand wedge", "finished two under par",
        "finished three over par", "missed the ninth green",
    ),
}  # fmt: skip
