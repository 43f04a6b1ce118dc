"""Naive twins of the kernels: slow, obvious textbook loops, written from the paper and not from the library.

Nothing here imports pairseek. Points are sequences of floats, samples lists of points. A link is "logistic" or
"probit"; a noise "constant", "normalized" or "decaying".
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import expit, log_expit, log_ndtr, ndtr


def naive_constant(p, q, k, noise):
    """K1, K2, K3 of the paper, |a| = 2|p - q|."""
    length = 2.0 * math.dist(p, q)
    return {"constant": k, "normalized": k / length, "decaying": k * math.exp(-length)}[noise]


def naive_logit(w, p, q, k, noise, appeal=0.0):
    """Equation 1 by utilities u_x = appeal_x - k|w - x|²: k_pq/k times u_p - u_q; `appeal` is the difference."""
    gap = sum((x - y) ** 2 for x, y in zip(w, q, strict=True)) - sum((x - y) ** 2 for x, y in zip(w, p, strict=True))
    return naive_constant(p, q, 1.0, noise) * (k * gap + appeal)


def naive_probability(z, link):
    """f(z)."""
    if link == "probit":
        return 0.5 * math.erfc(-z / math.sqrt(2.0))
    return 1.0 / (1.0 + math.exp(-z)) if z > -700 else 0.0


def naive_log_tie(z, link, width=0.0):
    """log(f(z + width) - f(z - width)); the log density f'(z) if the width is 0. For numbers and arrays.

    For the logistic function the difference is sinh t/(cosh t + cosh z).
    """
    z = np.asarray(z, dtype=float)
    if width == 0.0:
        return log_expit(z) + log_expit(-z) if link == "logistic" else -0.5 * z * z - 0.5 * math.log(2 * math.pi)
    if link == "logistic":
        top = math.log(2.0 * math.sinh(width))
        return top - np.logaddexp(np.logaddexp(width, -width), np.logaddexp(z, -z))
    # Use the tail where the normal distribution function is small, so that the difference does not cancel.
    upper, lower = log_ndtr(width - np.abs(z)), log_ndtr(-width - np.abs(z))
    return upper + np.log1p(-np.exp(lower - upper))


def naive_log_answer(z, outcome, link, width=0.0, lapse=0.0):
    """Log-likelihood of "first", "second" or "tie" at logits z (a number or an array).

    Ties of a width above 0 are one of three outcomes, over which a lapse is spread; with width 0 a lapse is spread over
    two, and a tie that is told is no lapse: its density is (1 - lapse) f'(z).
    """
    log_f = log_expit if link == "logistic" else log_ndtr
    z = np.asarray(z, dtype=float)
    if outcome == "tie":
        logs = naive_log_tie(z, link, width)
        if width == 0.0:
            return logs + math.log(1.0 - lapse)
    else:
        logs = log_f((z if outcome == "first" else -z) - width)
    return logs if lapse == 0.0 else np.log(lapse / (3 if width > 0 else 2) + (1 - lapse) * np.exp(logs))


def naive_log_likelihood(w, answers, k, noise, link, width=0.0, lapse=0.0):
    """Over answers (p, q, outcome) or (p, q, outcome, appeal difference)."""
    total = 0.0
    for p, q, outcome, *appeal in answers:
        total += float(naive_log_answer(naive_logit(w, p, q, k, noise, *appeal), outcome, link, width, lapse))
    return total


def naive_entropy(p):
    """h_b(p) in bits."""
    return -sum(x * math.log2(x) for x in (p, 1.0 - p) if x > 0.0)


def naive_mean(samples, weights):
    """Σ w x."""
    d = len(samples[0])
    return [math.fsum(w * x[i] for x, w in zip(samples, weights, strict=True)) for i in range(d)]


def naive_covariance(samples, weights):
    """Σ w (x - μ)(x - μ)'."""
    mu = naive_mean(samples, weights)
    d = len(mu)
    return [
        [
            math.fsum(w * (x[i] - mu[i]) * (x[j] - mu[j]) for x, w in zip(samples, weights, strict=True))
            for j in range(d)
        ]
        for i in range(d)
    ]


def naive_kish(weights):
    """(Σw)²/Σw²."""
    return math.fsum(weights) ** 2 / math.fsum(w * w for w in weights)


def naive_chances(samples, p, q, k, noise, link, appeal=0.0):
    """f at every sample."""
    return [naive_probability(naive_logit(w, p, q, k, noise, appeal), link) for w in samples]


def naive_infogain(samples, weights, p, q, k, noise, link, appeal=0.0):
    """h_b(E f) - E h_b(f) in bits, equations 4 to 7."""
    f = naive_chances(samples, p, q, k, noise, link, appeal)
    marginal = math.fsum(w * x for w, x in zip(weights, f, strict=True))
    conditional = math.fsum(w * naive_entropy(x) for w, x in zip(weights, f, strict=True))
    return naive_entropy(min(max(marginal, 0.0), 1.0)) - conditional


def naive_projected_deviation(covariance, p, q, k, noise):
    """k_pq sqrt(a'Σa) with a = 2(p - q)."""
    a = [2.0 * (x - y) for x, y in zip(p, q, strict=True)]
    d = range(len(a))
    return naive_constant(p, q, k, noise) * math.sqrt(sum(a[i] * covariance[i][j] * a[j] for i in d for j in d))


def naive_epmv(samples, weights, covariance, p, q, k, noise, link, appeal=0.0, *, penalty):
    """Equation 8."""
    f = naive_chances(samples, p, q, k, noise, link, appeal)
    marginal = math.fsum(w * x for w, x in zip(weights, f, strict=True))
    return naive_projected_deviation(covariance, p, q, k, noise) - penalty * abs(marginal - 0.5)


def naive_mcmv(mean, covariance, p, q, k, noise, appeal=0.0, *, penalty=1.0):
    """Equation 9: the distance is that of the mean from the plane where the logit is zero."""
    steepness = naive_constant(p, q, k, noise) * 2.0 * math.dist(p, q)
    distance = abs(naive_logit(mean, p, q, k, noise, appeal)) / steepness
    return naive_projected_deviation(covariance, p, q, k, noise) - penalty * distance


def naive_after(samples, weights, p, q, k, noise, link, appeal=0.0):
    """For each outcome: its probability, and the weights of the samples after it."""
    f = naive_chances(samples, p, q, k, noise, link, appeal)
    out = []
    for g in (f, [1.0 - x for x in f]):
        joint = [w * x for w, x in zip(weights, g, strict=True)]
        chance = math.fsum(joint)
        out.append((chance, [x / chance for x in joint]))
    return out


def naive_greedy_mse(samples, weights, p, q, k, noise, link, appeal=0.0):
    """Trace of the covariance now, less the trace expected after the answer."""
    drop = float(np.trace(naive_covariance(samples, weights)))
    for chance, after in naive_after(samples, weights, p, q, k, noise, link, appeal):
        drop -= chance * float(np.trace(naive_covariance(samples, after)))
    return drop


def naive_greedy_volume(samples, weights, p, q, k, noise, link, appeal=0.0):
    """Log determinant of the covariance now, less the one expected after the answer."""
    drop = math.log(np.linalg.det(naive_covariance(samples, weights)))
    for chance, after in naive_after(samples, weights, p, q, k, noise, link, appeal):
        drop -= chance * math.log(np.linalg.det(naive_covariance(samples, after)))
    return drop


def naive_log_posterior(points, answers, k, noise, link, width=0.0, lapse=0.0):
    """Log-likelihood at (n, d) points for a flat prior: `naive_log_likelihood` written for arrays."""
    points = np.asarray(points, dtype=float)
    total = np.zeros(len(points))
    for p, q, outcome, *appeal in answers:
        gap = ((points - np.asarray(q)) ** 2).sum(axis=1) - ((points - np.asarray(p)) ** 2).sum(axis=1)
        z = naive_constant(p, q, 1.0, noise) * (k * gap + sum(appeal))
        total += naive_log_answer(z, outcome, link, width, lapse)
    return total


def quadrature_moments(log_density, low, high):
    """Mean and covariance of a log-concave density on an interval or a rectangle, to about six digits.

    ``log_density`` takes (n, d) points, d = 1 or 2. In two dimensions the inner integral is taken over the second
    coordinate. The marginal of a log-concave density is log-concave, so both integrals use `_integrate`, which finds
    a peak of any width.
    """
    low, high = np.atleast_1d(np.asarray(low, dtype=float)), np.atleast_1d(np.asarray(high, dtype=float))
    if len(low) == 1:
        _, mean, variance = _integrate(lambda x: log_density(x.reshape(-1, 1)).reshape(x.shape), low, high)
        return mean, variance[None]
    first_low, first_high = low[:1], high[:1]

    def inner(x):
        """For (1, c) values of the first coordinate: (c,) log marginal, mean and variance of the second."""
        flat = x.ravel()

        def along(y):
            points = np.stack([np.repeat(flat, y.shape[1]), y.ravel()], axis=1)
            return log_density(points).reshape(y.shape)

        return _integrate(along, np.full(len(flat), low[1]), np.full(len(flat), high[1]))

    nodes, weights = _nodes(lambda x: inner(x)[0].reshape(x.shape), first_low, first_high)
    logs, second, variance = inner(nodes)
    mass = (weights * np.exp(logs - logs.max())).ravel()
    mass /= mass.sum()
    x = nodes.ravel()
    mean = np.array([mass @ x, mass @ second])
    cross = mass @ ((x - mean[0]) * (second - mean[1]))
    # Var = mean of the conditional variances + variance of the conditional means.
    spread = mass @ (variance + (second - mean[1]) ** 2)
    return mean, np.array([[mass @ (x - mean[0]) ** 2, cross], [cross, spread]])


def quadrature_log_mass(log_density, low, high):
    """Log integral of a density as in `quadrature_moments`; nearly log-concave ones are integrated as well."""
    low, high = np.atleast_1d(np.asarray(low, dtype=float)), np.atleast_1d(np.asarray(high, dtype=float))
    if len(low) == 1:
        return float(_integrate(lambda x: log_density(x.reshape(-1, 1)).reshape(x.shape), low, high)[0][0])

    def inner(x):
        flat = x.ravel()

        def along(y):
            points = np.stack([np.repeat(flat, y.shape[1]), y.ravel()], axis=1)
            return log_density(points).reshape(y.shape)

        return _integrate(along, np.full(len(flat), low[1]), np.full(len(flat), high[1]))[0].reshape(x.shape)

    return float(_integrate(inner, low[:1], high[:1])[0][0])


_DEPTH = 45.0
_GAUSS = np.polynomial.legendre.leggauss(60)
_SHARE = np.linspace(0.0, 1.0, 17)


def _integrate(log_f, low, high):
    """(r,) log integral, mean and variance of r log-concave functions; log_f maps (r, c) to (r, c)."""
    nodes, weights = _nodes(log_f, low, high)
    logs = log_f(nodes)
    top = logs.max(axis=1)
    mass = weights * np.exp(logs - top[:, None])
    total = mass.sum(axis=1)
    mean = (mass * nodes).sum(axis=1) / total
    variance = (mass * (nodes - mean[:, None]) ** 2).sum(axis=1) / total
    return top + np.log(total), mean, variance


def _nodes(log_f, low, high):
    """Gauss-Legendre nodes and weights over where the function is within e^-45 of its peak, split at the peak."""
    peak, top = _peaks(log_f, low, high)
    left, right = (_edges(log_f, peak, top, end) for end in (low, high))
    x, w = _GAUSS
    nodes, weights = [], []
    for a, b in ((left, peak), (peak, right)):
        half = (b - a) / 2
        nodes.append((a + half)[:, None] + half[:, None] * x)
        weights.append(half[:, None] * w)
    return np.concatenate(nodes, axis=1), np.concatenate(weights, axis=1)


def _peaks(log_f, low, high):
    """Where the functions are largest, to within e^-1 of their peak, and the values there."""
    rows = np.arange(len(low))
    a, b = low.copy(), high.copy()
    for _ in range(16):
        x = a[:, None] + (b - a)[:, None] * _SHARE
        values = log_f(x)
        best = np.argmax(values, axis=1)
        a, b = x[rows, np.maximum(best - 1, 0)], x[rows, np.minimum(best + 1, 16)]
        around = np.minimum(values[rows, np.maximum(best - 1, 0)], values[rows, np.minimum(best + 1, 16)])
        if np.all(values[rows, best] - around < 1.0):
            break
    return x[rows, best], values[rows, best]


def _edges(log_f, peak, top, end):
    """Points between peak and end beyond which the function is negligible (45 to 90 below the peak), or the end."""
    rows = np.arange(len(peak))
    near, far = peak.copy(), end.copy()
    for _ in range(16):
        if np.all(log_f(far[:, None])[:, 0] > top - 2 * _DEPTH):
            break
        x = near[:, None] + (far - near)[:, None] * _SHARE
        last = 16 - np.argmax(log_f(x)[:, ::-1] > (top - _DEPTH)[:, None], axis=1)
        near, far = x[rows, last], x[rows, np.minimum(last + 1, 16)]
    return far


def naive_gaussian_information(m, s, link):
    """h_b(E f(z)) - E h_b(f(z)) in bits for z normal with mean m and deviation s, by the trapezoidal rule."""
    nodes = [-8.0 + 0.05 * i for i in range(321)]
    weights = [math.exp(-0.5 * u * u) for u in nodes]
    total = math.fsum(weights)
    f = [naive_probability(m + s * u, link) for u in nodes]
    marginal = math.fsum(w * x for w, x in zip(weights, f, strict=True)) / total
    return naive_entropy(marginal) - math.fsum(w * naive_entropy(x) for w, x in zip(weights, f, strict=True)) / total


def naive_best_pair(n, utility, allowed):
    """Return (utility, i, j) of the best allowed pair i < j, the earliest among equals; None if no pair is allowed."""
    best = None
    for i in range(n):
        for j in range(i + 1, n):
            if allowed(i, j):
                u = utility(i, j)
                if best is None or u > best[0]:
                    best = (u, i, j)
    return best


def naive_diverse_pairs(n, count, utility, allowed):
    """Return the best pair, then the best one without its items, and so on."""
    out = []

    def free(i, j):
        return allowed(i, j) and not {i, j} & {row for _, *pair in out for row in pair}

    while len(out) < count:
        best = naive_best_pair(n, utility, free)
        if best is None:
            break
        out.append(best)
    return out


def naive_triplet_loss(points, triplets, method, parameter=0.0):
    """Loss of (anchor, near, far) by the formulas of the methods' papers, one triplet after the other."""
    total = 0.0
    for i, j, k in triplets:
        s = sum((x - y) ** 2 for x, y in zip(points[i], points[j], strict=True))
        t = sum((x - y) ** 2 for x, y in zip(points[i], points[k], strict=True))
        if method == "ste":
            total -= math.log(math.exp(-s) / (math.exp(-s) + math.exp(-t)))
        elif method == "ckl":
            total -= math.log((parameter + t) / (2 * parameter + s + t))
        elif method == "tste":
            near, far = ((1 + x / parameter) ** (-(parameter + 1) / 2) for x in (s, t))
            total -= math.log(near / (near + far))
        else:
            total += max(0.0, 1.0 + s - t) ** 2
    return total


def naive_triplet_likelihood(points, triplets, k, noise, link):
    """Log-likelihood of triplets: the anchor is a user who prefers near to far."""
    return sum(
        naive_log_answer(naive_logit(points[i], points[j], points[h], k, noise), "first", link) for i, j, h in triplets
    )


def reliability_grid(answers, k, noise, link, *, spread=None, beta=None, random=0.0, lapse=0.0, width=0.0):
    """The posterior of (w, log k, lapse) in one dimension, by the midpoint rule over all three.

    Flat prior of w from -1 to 1; the whole logit times r, log r normal with this spread (k r is the unknown k), or r is
    1 if that is None; the lapse Beta(*beta), or 1 with the probability `random`, or known if `beta` is None. Answers
    are those of `naive_log_likelihood`. Returns the axes w, log r and lapse (whose last value is 1 where the lapse is
    unknown), the (w, log r, lapse) probabilities, and the log evidence.
    """
    w = -1.0 + 2.0 * (np.arange(161) + 0.5) / 161
    u = np.zeros(1) if spread is None else spread * (-5.0 + 10.0 * (np.arange(81) + 0.5) / 81)
    lapse = np.array([lapse]) if beta is None else (np.arange(60) + 0.5) / 60
    logs = np.zeros((len(w), len(u), len(lapse)))
    if spread is not None:
        logs += _log_shares(-0.5 * (u[:, None] / spread) ** 2)
    if beta is not None:
        shares = np.exp(_log_shares((beta[0] - 1) * np.log(lapse) + (beta[1] - 1) * np.log1p(-lapse)))
        lapse = np.append(lapse, 1.0)
        logs = np.repeat(logs[:, :, :1], len(lapse), axis=2)
        logs += np.log(np.maximum(np.append((1.0 - random) * shares, random), 1e-300))
    logs -= math.log(len(w))
    for p, q, outcome, *appeal in answers:
        z = np.exp(u) * _margins(w, p, q, k, noise, sum(appeal))[:, None]
        f = np.exp(naive_log_answer(z, outcome, link, width))[:, :, None]
        floor = 0.0 if outcome == "tie" and width == 0.0 else lapse / (3 if width > 0 else 2)
        logs += np.log(np.maximum(floor + (1 - lapse) * f, 1e-300))
    weights = np.exp(logs - logs.max())
    return (w, u, lapse), weights / weights.sum(), float(logs.max() + np.log(weights.sum()))


def _log_shares(logs):
    return logs - np.log(np.exp(logs).sum())


def _margins(w, p, q, k, noise, appeal):
    """Logits at points w of a line, for r = 1."""
    return naive_constant(p, q, 1.0, noise) * (k * ((w - q[0]) ** 2 - (w - p[0]) ** 2) + appeal)


def reliability_information(axes, weights, p, q, k, noise, link, appeal=0.0):
    """I(w; y) in bits, k and lapse integrated out, and P(first), on a grid of `reliability_grid`."""
    f = expit if link == "logistic" else ndtr
    w, u, lapse = axes
    chance = f(np.exp(u) * _margins(w, p, q, k, noise, appeal)[:, None])
    chance = lapse / 2 + (1 - lapse) * chance[:, :, None]
    place = weights.sum(axis=(1, 2))
    given = (weights * chance).sum(axis=(1, 2)) / np.maximum(place, 1e-300)
    marginal = float(place @ given)
    conditional = math.fsum(float(a) * naive_entropy(float(b)) for a, b in zip(place, given, strict=True))
    return naive_entropy(marginal) - conditional, marginal
