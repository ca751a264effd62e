"""The Byzantine bakery (Bessani, Fraga & Lung 2005), one idea a file: ``system`` says what it promises."""
