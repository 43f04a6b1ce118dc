"""Validation of the parts of a search, separately and together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import cast

import numpy as np

from pairseek import posteriors
from pairseek.core.user_parts import missing_members
from pairseek.errors import InvalidParameter, Unsupported
from pairseek.model.items import Items
from pairseek.model.priors import GaussianPrior, Prior, is_density
from pairseek.model.responses import LINK_MEMBERS, Response
from pairseek.model.spaces import Space
from pairseek.pairs.sources import ListedPairs, Rest
from pairseek.pairs.strategies import UTILITIES
from pairseek.pairs.strategies.base import BaseProcedure, BaseUtility, utility_of
from pairseek.posteriors import Posterior
from pairseek.posteriors.base import posterior_of
from pairseek.search.stopping import AfterAnswers, BestItemFound, GainBelow, StopRule


@dataclass(frozen=True)
class Contract:
    """The members that a part of a search must have.

    Attributes
    ----------
    noun
        The kind of part, with an article.
    example
        An instance that meets the contract.
    alternatives
        Sets of members; a part must have all members of one set. All except ``name`` are methods.
    """

    noun: str
    example: str
    alternatives: tuple[tuple[str, ...], ...]

    def missing(self, part: object) -> tuple[str, ...]:
        """Return the members that a part lacks to meet the alternative it comes closest to."""
        missing_by_alternative = [missing_members(part, members) for members in self.alternatives]
        return min(missing_by_alternative, key=len)

    def check(self, part: object, name: str) -> None:
        """Raise `InvalidParameter`, naming the missing members, if a part does not meet the contract."""
        missing = self.missing(part)
        if not missing:
            return
        required = " or ".join(_member_list(members) for members in self.alternatives)
        if missing in self.alternatives:
            raise InvalidParameter(
                f"{name} is {part!r}: expected {self.noun}, such as {self.example}, or an object with {required}",
                field=name,
            )
        raise InvalidParameter(
            f"{name} is {part!r}, which is not {self.noun}: it lacks {_member_list(missing)}; {self.noun} must have "
            f"{required}, as {self.example} does",
            field=name,
        )


CONTRACTS = {
    "prior": Contract(
        "a prior", "UniformBox(-1, 1)", (("box", "quadratic", "moments", "sample"), ("sample", "log_density"))
    ),
    "posterior": Contract("a posterior", "EP()", (("infer",),)),
    "strategy": Contract("a strategy", "InfoGain()", (("name", "score"), ("name", "next", "estimate"))),
    "candidates": Contract("a source of candidates", "AllPairs()", (("choose",),)),
    "stop": Contract("a stop rule", "AfterAnswers(20)", (("reached", "remaining"),)),
}


def check_parts(**parts: object) -> None:
    """Reject parts that do not meet their contracts, naming the missing members; None stands for a default."""
    for name, part in parts.items():
        if part is None:
            continue
        if isinstance(part, type):
            raise InvalidParameter(
                f"{name} is the class {part.__name__}: give an instance, {part.__name__}(...)", field=name
            )
        if name == "response":
            check_response(part)
        elif name == "rest":
            if not isinstance(part, Rest):
                raise InvalidParameter(f"rest is {part!r}: expected a Rest, such as Rest(pair=10, item=1)", field=name)
        else:
            CONTRACTS[name].check(part, name)
            if name == "strategy" and not missing_members(part, ("score",)):
                check_score(utility_of(part))


def check_score(strategy: BaseUtility) -> None:
    """Reject a strategy whose score does not accept the arguments that a search passes."""
    arguments = {"rng": None} if strategy.takes_generator else {}
    try:
        signature(strategy.score).bind(None, None, **arguments)
    except TypeError:
        kind = type(strategy.original).__name__
        raise InvalidParameter(
            f"{kind}.score{signature(strategy.score)} cannot be called by a search: define "
            f"score(candidates, belief) or, for a score that draws, score(candidates, belief, rng)",
            field="strategy",
        ) from None


def check_response(response: object, name: str = "response") -> None:
    """Reject a response that does not derive from `Response` or does not define its link."""
    if not isinstance(response, Response):
        raise InvalidParameter(
            f"{name} is {response!r}: expected a Response, such as Logistic(k=1.5) or Probit(), or a subclass that "
            f"defines {_member_list(LINK_MEMBERS)}",
            field=name,
        )
    if not _is_hashable(response):
        raise InvalidParameter(
            f"{name} is {response!r}, which cannot be hashed: give its settings as numbers or tuples", field=name
        )
    missing = tuple(m for m in LINK_MEMBERS if getattr(type(response), m) is getattr(Response, m))
    if missing:
        raise InvalidParameter(
            f"{name} is {response!r}, whose class lacks {_member_list(missing)}: a Response must define "
            f"{_member_list(LINK_MEMBERS)}",
            field=name,
        )


def _is_hashable(part: object) -> bool:
    try:
        hash(part)
    except TypeError:
        return False
    return True


def _member_list(members: Sequence[str]) -> str:
    names = [member if member == "name" else f"{member}()" for member in members]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def check_together(
    items: Items | Space,
    utility: BaseUtility | None,
    procedure: BaseProcedure | None,
    pair_options: Mapping[str, object],
    rules: Sequence[StopRule],
) -> None:
    """Reject parts that do not work with these items, or that the items or the strategy would silently ignore.

    ``pair_options`` are the source of pairs and the rest, if given.
    """
    if utility is None or utility.planes is None:
        space_strategies = (
            name for name, kind in UTILITIES.items() if issubclass(kind, BaseUtility) and kind.planes is not None
        )
        items._require_catalogue(
            Unsupported(
                f"the strategy {_strategy_name(utility, procedure)!r} defines no planes(), so it cannot ask about a "
                f"continuous Space: use one of {', '.join(space_strategies)}"
            )
        )
    for rule in rules:
        if isinstance(rule, BestItemFound | GainBelow):
            kind = type(rule).__name__
            message = f"a continuous Space has no best item, so {kind} is never met: use another stop rule"
            items._require_catalogue(Unsupported(message))
    for name, part in pair_options.items():
        # An explicit Rest() equals the default, so it is accepted.
        if part is not None and part != Rest():
            message = f"{name}={part!r} would do nothing, because"
            items._require_catalogue(Unsupported(f"{message} a continuous Space has no list of pairs: leave it out"))
            if procedure is not None:
                raise Unsupported(f"{message} the strategy {procedure.name!r} chooses pairs itself: leave it out")


def _strategy_name(*strategies: BaseUtility | BaseProcedure | None) -> str:
    return next(strategy.name for strategy in strategies if strategy is not None)


def check_askable(procedure: BaseProcedure | None, candidates: object) -> None:
    """Reject `askable` if the procedure or the source of pairs would ignore it."""
    if procedure is not None:
        raise Unsupported(f"the strategy {procedure.name!r} chooses among all items itself: leave askable out")
    if isinstance(candidates, ListedPairs):
        raise Unsupported("ListedPairs already names the pairs to ask: leave askable out")


def check_appeal(items: Items | Space, response: Response) -> None:
    """Reject an unknown noise kind for items that differ in appeal."""
    if response.noise_prior is not None and len(np.unique(items.appeal)) > 1:
        raise Unsupported(
            "the noise kind is unknown and the items differ in appeal, as the items of a population do: appeal is "
            "measured against k, which has a different unit under each kind; give the noise kind"
        )


def check_residual(items: Items | Space, response: Response, posterior: Posterior) -> None:
    """Reject residual utilities that the items or the posterior cannot support.

    Also reject items that have neither coordinates nor residual utilities, about which nothing can be learned.
    """
    if response.residual_deviation == 0.0:
        if not items.d:
            raise Unsupported(
                "the items have no coordinates and the response has no residual utilities, so nothing can be learned: "
                "give residual, as in ps.Logistic(1.0, 'constant', residual=1.5), or coordinates"
            )
        return
    if not items.d and response.noise != "constant":
        raise Unsupported(f"the items have no coordinates, but {response.noise} noise depends on them: use 'constant'")
    items._require_catalogue(
        Unsupported("residual utilities belong to items, but a continuous Space has none: use residual=0")
    )
    if response.noise_prior is not None:
        raise Unsupported(
            "residual utilities cannot be combined with an unknown noise kind: give the noise kind, or residual=0"
        )
    if not posterior_of(posterior).takes_residuals:
        raise Unsupported(f"{type(posterior).__name__} cannot infer residual utilities: use EP(), or residual=0")


def check_curvature(items: Items | Space, response: Response, prior: Prior) -> None:
    """Reject a curvature other than 1 if the model does not support it."""
    if response.curvature == 1.0:
        return
    items._require_catalogue(
        Unsupported("a curvature other than 1 belongs to items, but a continuous Space has none: use curvature=1")
    )
    if not items.d:
        raise Unsupported("the items have no coordinates, so their utility has no curvature: use curvature=1")
    if not isinstance(prior, GaussianPrior):
        raise Unsupported(
            f"a curvature other than 1 needs a Gaussian prior, but this one is {type(prior).__name__}: use "
            f"GaussianPrior(mean, covariance), or curvature=1"
        )


def check_inference(response: Response, posterior: Posterior, prior: Prior, d: int) -> None:
    """Reject a response, a prior or a number of dimensions that the posterior does not support."""
    kind, capabilities = type(posterior).__name__, posterior_of(posterior)
    most_dimensions = capabilities.most_dimensions
    if most_dimensions is not None and d > most_dimensions:
        raise InvalidParameter(
            f"a {kind} takes at most {most_dimensions} dimensions and the items have {d}: use EP() or Particles()",
            field="posterior",
        )
    if capabilities.uses_kernels or response.unknown:
        _ = response.link  # raises Unsupported for a response with formulas of its own
    if capabilities.uses_kernels and is_density(prior):
        raise Unsupported(
            f"{kind} needs a Gaussian factor inside a box, but {type(prior).__name__} is known only by its "
            f"log_density(): use Particles(), Grid() in up to {posteriors.Grid.most_dimensions} dimensions, or a "
            "posterior of your own"
        )
    if capabilities.infers_reliability:
        return
    if response.unknown:
        raise Unsupported(
            f"{kind} cannot infer k or a lapse, but they are unknown in {response!r}: use EP(), or give numbers"
        )
    if response.lapse_rate > 0.0 and not capabilities.takes_lapses:
        raise Unsupported(
            f"{kind} needs a log-concave posterior, but lapse={response.lapse_rate:g} rules that out: "
            f"use Particles(), or lapse=0"
        )


def rules_of(stop: StopRule | Sequence[StopRule] | int | None) -> tuple[StopRule, ...]:
    """Return the stop rules as a tuple: empty for None, `AfterAnswers` for a number, otherwise the given rules."""
    if stop is None:
        return ()
    if isinstance(stop, int | np.integer) and not isinstance(stop, bool):
        return (AfterAnswers(int(stop)),)
    rules: tuple[object, ...] = (stop,)
    if isinstance(stop, Sequence) and not isinstance(stop, str):
        rules = tuple(stop)
    for rule in rules:
        if rule is None:
            raise InvalidParameter(f"stop is {stop!r}: give rules, such as AfterAnswers(20)", field="stop")
        check_parts(stop=rule)
    return cast("tuple[StopRule, ...]", rules)
