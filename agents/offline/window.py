"""How an output's window lies along one spatial axis."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The window of a convolution or of pooling."""

    taps: int = 1
    stride: int = 1
    padding: int = 0
    dilation: int = 1
    output_padding: int = 0
    transposed: bool = False

    def outputs(self, extent: int) -> int:
        """The length of the output.

        >>> Window(taps=3, stride=2, padding=1).outputs(9)
        5
        >>> Window(taps=3, stride=2, padding=1, transposed=True).outputs(5)
        9
        """
        reach = self.dilation * (self.taps - 1)
        if self.transposed:
            left = (extent - 1) * self.stride - 2 * self.padding
            return left + reach + self.output_padding + 1
        return (extent + 2 * self.padding - reach - 1) // self.stride + 1

    def size(self, extent: str, taps: str) -> str:
        """The same of Python expressions."""
        reach = f"{self.dilation} * ({taps} - 1)"
        if self.transposed:
            left = f"({extent} - 1) * {self.stride} - {2 * self.padding}"
            return f"({left} + {reach} + {self.output_padding + 1})"
        return f"(({extent} + {2 * self.padding} - {reach} - 1) // {self.stride} + 1)"
