"""What a listener serves. A file `NAME.py` has `routes(serving) -> list[BaseRoute]`, NAME one of
`settings.PURPOSES` that is built."""
