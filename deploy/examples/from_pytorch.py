import sys
import torch
torch.manual_seed(0)  # the same weights and input each time; yours come from a file
model = torch.nn.Sequential(torch.nn.Linear(784, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10)).eval()
x = torch.rand(1, 784)
if sys.argv[1] == "export":
    torch.onnx.export(model, (x,), "model.onnx", input_names=["x"], output_names=["y"])
else:
    import hone
    torch.testing.assert_close(torch.from_dlpack(hone.load("model.hone")(x=x)), model(x).detach(), rtol=1e-3, atol=1e-4)
