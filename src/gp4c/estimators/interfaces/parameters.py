"""The constructor's arguments of an estimator, as scikit-learn has them.

The contract (``get_params``, ``set_params``) is written out here because importing scikit-learn
costs more than most fits.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, ClassVar, Self

from gp4c.data.checks import unknown_name

if TYPE_CHECKING:
    from sklearn.utils import Tags


class Parameters:
    """An object whose parameters are the keyword arguments of its constructor."""

    __signature__: ClassVar[inspect.Signature]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        # help and the API reference would show the arguments of __new__
        parameters = list(inspect.signature(cls.__init__).parameters.values())
        cls.__signature__ = inspect.Signature(parameters[1:])

    def __new__(cls, *args: object, **params: object) -> Self:
        """Refuse an unknown argument with the known ones."""
        known = inspect.signature(cls.__init__).parameters.values()
        if not any(p.kind is p.VAR_KEYWORD for p in known):
            names = [p.name for p in known][1:]
            for name in params:
                if name not in names:
                    raise TypeError(
                        f"{cls.__name__} has no argument {name!r}; {unknown_name(name, names)}"
                    )
        return super().__new__(cls)

    @classmethod
    def _parameter_names(cls) -> list[str]:
        parameters = inspect.signature(cls.__init__).parameters.values()
        return [p.name for p in parameters if p.kind == p.KEYWORD_ONLY]

    def get_params(self, deep: bool = True) -> dict[str, object]:
        """Return the constructor's arguments; `deep` is ignored.

        Examples
        --------
        >>> import gp4c
        >>> gp4c.HomogeneousPoisson(effect="gamma").get_params()["effect"]
        'gamma'
        """
        return {name: getattr(self, name) for name in self._parameter_names()}

    def set_params(self, **params: object) -> Self:
        """Set constructor arguments by name.

        Examples
        --------
        >>> import gp4c
        >>> gp4c.HomogeneousPoisson().set_params(effect="gamma")
        HomogeneousPoisson(effect='gamma')
        """
        names = self._parameter_names()
        for name, value in params.items():
            if name not in names:
                raise ValueError(
                    f"{type(self).__name__} has no parameter {name!r}; it has {', '.join(names)}"
                )
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self).__init__).parameters
        changed = [
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if not _same(value, defaults[name].default)
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_tags__(self) -> Tags:
        from sklearn.utils import InputTags, Tags, TargetTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            input_tags=InputTags(two_d_array=False),
        )


def _same(value: object, default: object) -> bool:
    return value is default or (type(value) is type(default) and bool(value == default))
