"""A saved classifier as a model of MLflow, without pickle: `python mlflow_model.py model.safetensors FOLDER`."""

import sys

import mlflow.pyfunc

import bayesgen as bg


class Classifier(mlflow.pyfunc.PythonModel):
    def load_context(self, context):
        self.classifier = bg.load(context.artifacts["model"])

    def predict(self, context, model_input, params=None):
        probability, classes = self.classifier.predict_proba(model_input), self.classifier.classes_
        columns = {f"p_{label}": own for label, own in zip(classes, probability.T, strict=True)}
        return model_input[[]].assign(**{"class": classes[probability.argmax(1)]}, **columns)


mlflow.models.set_model(Classifier())  # MLflow runs this file again where it loads the model
if __name__ == "__main__":
    needs = [f"bayesgen=={bg.__version__}"]
    mlflow.pyfunc.save_model(
        sys.argv[2], python_model=__file__, artifacts={"model": sys.argv[1]}, pip_requirements=needs
    )
