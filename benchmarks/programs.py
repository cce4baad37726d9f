"""The lecture models as plain NumPyro programs, without bayesgen; data and hyperparameters are arguments."""

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist


def coin(x, a, b):
    probability = numpyro.sample("probability", dist.Beta(a, b))
    with numpyro.plate("rows", len(x)):
        numpyro.sample("x", dist.Bernoulli(probability), obs=x)


def binomial(x, trials, a, b):
    probability = numpyro.sample("probability", dist.Beta(a, b))
    with numpyro.plate("rows", len(x)):
        numpyro.sample("x", dist.Binomial(trials, probability), obs=x)


def categorical(x, alpha):
    probability = numpyro.sample("probability", dist.Dirichlet(alpha))
    with numpyro.plate("rows", len(x)):
        numpyro.sample("x", dist.Categorical(probability), obs=x)


def multinomial(x, alpha):
    probability = numpyro.sample("probability", dist.Dirichlet(alpha))
    with numpyro.plate("rows", len(x)):
        numpyro.sample("x", dist.Multinomial(x.sum(1), probability), obs=x)


def poisson(x, concentration, rate):
    mean = numpyro.sample("mean", dist.Gamma(concentration, rate))
    with numpyro.plate("rows", len(x)):
        numpyro.sample("x", dist.Poisson(mean), obs=x)


def normal_known_variance(x, mean, sd, noise_sd):
    centre = numpyro.sample("mean", dist.Normal(mean, sd))
    with numpyro.plate("rows", len(x)):
        numpyro.sample("x", dist.Normal(centre, noise_sd), obs=x)


def normal_known_mean(x, mean, alpha, beta):
    variance = numpyro.sample("variance", dist.InverseGamma(alpha, beta))
    with numpyro.plate("rows", len(x)):
        numpyro.sample("x", dist.Normal(mean, jnp.sqrt(variance)), obs=x)


def normal(x, mean, kappa, alpha, beta):
    variance = numpyro.sample("variance", dist.InverseGamma(alpha, beta))
    centre = numpyro.sample("mean", dist.Normal(mean, jnp.sqrt(variance / kappa)))
    with numpyro.plate("rows", len(x)):
        numpyro.sample("x", dist.Normal(centre, jnp.sqrt(variance)), obs=x)


def log_normal(x, shift, mean, kappa, alpha, beta):
    variance = numpyro.sample("variance", dist.InverseGamma(alpha, beta))
    centre = numpyro.sample("mean", dist.Normal(mean, jnp.sqrt(variance / kappa)))
    with numpyro.plate("rows", len(x)):
        numpyro.sample("x", dist.LogNormal(centre, jnp.sqrt(variance)), obs=x + shift)


def gaussian_vector(x, mean, kappa, nu, scale):
    covariance = numpyro.sample("covariance", dist.InverseWishart(nu, scale_matrix=scale))
    centre = numpyro.sample("mean", dist.MultivariateNormal(mean, covariance / kappa))
    with numpyro.plate("rows", len(x)):
        numpyro.sample("x", dist.MultivariateNormal(centre, covariance), obs=x)


def markov_chain(before, symbol, alpha):
    with numpyro.plate("contexts", 1 + len(alpha)):  # the first is the beginning of a sequence
        probability = numpyro.sample("probability", dist.Dirichlet(alpha))
    with numpyro.plate("rows", len(symbol)):
        numpyro.sample("symbol", dist.Categorical(probability[before]), obs=symbol)


def naive_bayes(t, island, male, mass, classes_alpha, island_alpha, a, b, mean, kappa, alpha, beta):
    share = numpyro.sample("classes.probability", dist.Dirichlet(classes_alpha))
    with numpyro.plate("classes", len(classes_alpha)):
        on_island = numpyro.sample("island.probability", dist.Dirichlet(island_alpha))
        probability = numpyro.sample("male.probability", dist.Beta(a, b))
        variance = numpyro.sample("mass.variance", dist.InverseGamma(alpha, beta))
        centre = numpyro.sample("mass.mean", dist.Normal(mean, jnp.sqrt(variance / kappa)))
    with numpyro.plate("rows", len(t)):
        numpyro.sample("t", dist.Categorical(share), obs=t)
        numpyro.sample("island", dist.Categorical(on_island[t]), obs=island)
        numpyro.sample("male", dist.Bernoulli(probability[t]), obs=male)
        numpyro.sample("mass", dist.Normal(centre[t], jnp.sqrt(variance[t])), obs=mass)


def discriminant(t, x, alpha, mean, kappa, nu, scale):
    share = numpyro.sample("classes.probability", dist.Dirichlet(alpha))
    with numpyro.plate("classes", len(alpha)):
        covariance = numpyro.sample("gaussian.covariance", dist.InverseWishart(nu, scale_matrix=scale))
        centre = numpyro.sample("gaussian.mean", dist.MultivariateNormal(mean, covariance / kappa))
    with numpyro.plate("rows", len(t)):
        numpyro.sample("t", dist.Categorical(share), obs=t)
        numpyro.sample("x", dist.MultivariateNormal(centre[t], covariance[t]), obs=x)


def discriminant_shared(t, x, alpha, mean, kappa, nu, scale):
    share = numpyro.sample("classes.probability", dist.Dirichlet(alpha))
    covariance = numpyro.sample("gaussian.covariance", dist.InverseWishart(nu, scale_matrix=scale))
    with numpyro.plate("classes", len(alpha)):
        centre = numpyro.sample("gaussian.mean", dist.MultivariateNormal(mean, covariance / kappa))
    with numpyro.plate("rows", len(t)):
        numpyro.sample("t", dist.Categorical(share), obs=t)
        numpyro.sample("x", dist.MultivariateNormal(centre[t], covariance), obs=x)


def line(x, t, prior_scale, intercept_scale, alpha, beta):
    variance = numpyro.sample("variance", dist.InverseGamma(alpha, beta))
    sd = jnp.sqrt(variance)
    intercept = numpyro.sample("intercept", dist.Normal(0.0, intercept_scale * sd))
    coefficients = numpyro.sample("coefficients", dist.Normal(0.0, prior_scale * sd).to_event(1))
    with numpyro.plate("rows", len(t)):
        numpyro.sample("t", dist.Normal(intercept + x @ coefficients, sd), obs=t)


def line_known_noise(x, t, prior_scale, intercept_scale, noise_sd):
    intercept = numpyro.sample("intercept", dist.Normal(0.0, intercept_scale))
    coefficients = numpyro.sample("coefficients", dist.Normal(0.0, prior_scale).to_event(1))
    with numpyro.plate("rows", len(t)):
        numpyro.sample("t", dist.Normal(intercept + x @ coefficients, noise_sd), obs=t)


def line_prior_apart(x, t, prior_scale, intercept_scale, alpha, beta):
    variance = numpyro.sample("variance", dist.InverseGamma(alpha, beta))
    intercept = numpyro.sample("intercept", dist.Normal(0.0, intercept_scale))
    coefficients = numpyro.sample("coefficients", dist.Normal(0.0, prior_scale).to_event(1))
    with numpyro.plate("rows", len(t)):
        numpyro.sample("t", dist.Normal(intercept + x @ coefficients, jnp.sqrt(variance)), obs=t)


def line_robust(x, t, prior_scale, intercept_scale, alpha, beta):
    variance = numpyro.sample("variance", dist.InverseGamma(alpha, beta))
    sd = jnp.sqrt(variance)
    intercept = numpyro.sample("intercept", dist.Normal(0.0, intercept_scale * sd))
    coefficients = numpyro.sample("coefficients", dist.Normal(0.0, prior_scale * sd).to_event(1))
    with numpyro.plate("rows", len(t)):
        numpyro.sample("t", dist.Laplace(intercept + x @ coefficients, sd / jnp.sqrt(2.0)), obs=t)


def logistic(x, t, prior_scale, intercept_scale):
    intercept = numpyro.sample("intercept", dist.Normal(0.0, intercept_scale))
    coefficients = numpyro.sample("coefficients", dist.Normal(0.0, prior_scale).to_event(1))
    with numpyro.plate("rows", len(t)):
        numpyro.sample("t", dist.Bernoulli(logits=intercept + x @ coefficients), obs=t)


def probit(x, t, prior_scale, intercept_scale):
    intercept = numpyro.sample("intercept", dist.Normal(0.0, intercept_scale))
    coefficients = numpyro.sample("coefficients", dist.Normal(0.0, prior_scale).to_event(1))
    with numpyro.plate("rows", len(t)):
        numpyro.sample("t", dist.Bernoulli(jax.scipy.special.ndtr(intercept + x @ coefficients)), obs=t)


def softmax(x, t, prior_scale, intercept_scale, classes):
    with numpyro.plate("classes", classes):
        intercept = numpyro.sample("intercept", dist.Normal(0.0, intercept_scale))
        coefficients = numpyro.sample("coefficients", dist.Normal(0.0, prior_scale).to_event(1))
    with numpyro.plate("rows", len(t)):
        numpyro.sample("t", dist.Categorical(logits=intercept + x @ coefficients.T), obs=t)


def ordered(x, t, prior_scale, intercept_scale, classes):
    support = dist.constraints.ordered_vector
    cuts = numpyro.sample("cuts", dist.ImproperUniform(support, (), event_shape=(classes - 1,)))
    orders = jax.scipy.special.gammaln(1.0 * classes)  # log (K - 1)!: normals, sorted
    numpyro.factor("prior", dist.Normal(0.0, intercept_scale).log_prob(cuts).sum() + orders)
    coefficients = numpyro.sample("coefficients", dist.Normal(0.0, prior_scale).to_event(1))
    with numpyro.plate("rows", len(t)):
        numpyro.sample("t", dist.OrderedLogistic(x @ coefficients, cuts), obs=t)
