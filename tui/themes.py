"""Dark, light and high contrast."""

from __future__ import annotations

from textual.theme import Theme

DARK = "textual-dark"
LIGHT = "textual-light"
HIGH_CONTRAST = Theme(
    name="high-contrast",
    primary="#ffff00",
    secondary="#00ffff",
    accent="#ffff00",
    warning="#ffff00",
    error="#ff6060",
    success="#00ff00",
    foreground="#ffffff",
    background="#000000",
    surface="#000000",
    panel="#000000",
    boost="#000000",
    dark=True,
    text_alpha=1.0,
    variables={
        "block-cursor-background": "#ffff00",
        "block-cursor-foreground": "#000000",
        "block-cursor-blurred-background": "#606060",
        "block-cursor-blurred-foreground": "#ffffff",
        "footer-key-foreground": "#ffff00",
        "footer-background": "#000000",
        "border": "#ffffff",
        "border-blurred": "#a0a0a0",
        "scrollbar": "#ffffff",
        "scrollbar-background": "#303030",
    },
)
THEMES = (DARK, LIGHT, HIGH_CONTRAST.name)


def after(theme: str) -> str:
    """The next one, round and round."""
    return THEMES[(THEMES.index(theme) + 1) % len(THEMES)] if theme in THEMES else DARK
