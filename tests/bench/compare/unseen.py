#!/usr/bin/env python3
"""Networks that no test and no constant of Hone's was made with, exported by PyTorch with seeded weights: what is claimed of
the models that Hone is measured on every day is measured on these as well.

    tests/bench/compare/unseen.py -o DIR [NAME ...]              all of them by default; what is there is left
    tests/bench/compare/run DIR/*.onnx --trials 0 --peers onnxruntime,openvino

torchvision and transformers come from PyPI into an environment of their own (unseen.txt, made at first use in build/unseen).
"""
import argparse
import os
import subprocess
import sys

# Of torchvision, for an image of 224x224 where nothing else is said.
IMAGES = {"alexnet": {}, "convnext_tiny": {}, "efficientnet_v2_s": {}, "maxvit_t": {}, "mnasnet1_0": {}, "regnet_x_800mf": {},
          "regnet_y_400mf": {}, "resnext50_32x4d": {}, "squeezenet1_1": {}, "swin_t": {}, "vgg11_bn": {},
          "googlenet": {"init_weights": False, "aux_logits": False},
          "inception_v3": {"init_weights": False, "aux_logits": False, "size": 299}}
WORDS = 4000
# Of transformers: the model, its configuration, what is not the configuration's default, the input.
DECODER = {"vocab_size": WORDS, "hidden_size": 512, "intermediate_size": 1376, "num_hidden_layers": 4, "num_attention_heads": 8,
           "use_cache": False}
TRANSFORMERS = {
    "albert": ("AlbertModel", "AlbertConfig", {"vocab_size": WORDS, "hidden_size": 768, "num_attention_heads": 12,
                                               "intermediate_size": 3072, "num_hidden_layers": 4}, ("words", 48)),
    "convnextv2": ("ConvNextV2Model", "ConvNextV2Config", {"hidden_sizes": [40, 80, 160, 320], "depths": [2, 2, 6, 2]},
                   ("image", 224)),
    "dinov2": ("Dinov2Model", "Dinov2Config", {"hidden_size": 384, "num_attention_heads": 6, "num_hidden_layers": 4,
                                               "image_size": 224}, ("image", 224)),
    "distilbert": ("DistilBertModel", "DistilBertConfig", {"vocab_size": WORDS, "n_layers": 4}, ("words", 96)),
    "llama": ("LlamaModel", "LlamaConfig", {**DECODER, "num_key_value_heads": 4}, ("words", 64)),
    "mobilevit": ("MobileViTModel", "MobileViTConfig", {"hidden_sizes": [64, 80, 96],
                                                        "neck_hidden_sizes": [16, 16, 24, 48, 64, 80, 320]}, ("image", 256)),
    "qwen3": ("Qwen3Model", "Qwen3Config", {**DECODER, "num_key_value_heads": 2, "head_dim": 64}, ("words", 64)),
    "segformer": ("SegformerModel", "SegformerConfig", {}, ("image", 256)),
    "t5_encoder": ("T5EncoderModel", "T5Config", {"vocab_size": WORDS, "num_layers": 6}, ("words", 64)),
    "wav2vec2": ("Wav2Vec2Model", "Wav2Vec2Config", {"num_hidden_layers": 3}, ("sound", 16000)),
    "whisper_encoder": ("WhisperModel", "WhisperConfig", {"d_model": 384, "encoder_layers": 4, "encoder_attention_heads": 6,
                                                          "encoder_ffn_dim": 1536}, ("spectrum", 3000)),
}
OTHERS = ["c3d", "deeplab_mobilenet_v3", "lstm", "unet"]


def input_of(kind, size):
    import torch
    if kind == "words":
        return torch.randint(0, WORDS, (1, size))
    return torch.randn({"image": (1, 3, size, size), "sound": (1, size), "spectrum": (1, 80, size)}[kind])


def other(name):
    import torch
    import torchvision
    from torch import nn

    class DeepLab(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = torchvision.models.segmentation.deeplabv3_mobilenet_v3_large(weights=None, weights_backbone=None)

        def forward(self, x):
            return self.net(x)["out"]

    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.layers = nn.Embedding(WORDS, 256), nn.LSTM(256, 512, 2, batch_first=True)
            self.out = nn.Linear(512, WORDS)

        def forward(self, x):
            return self.out(self.layers(self.words(x))[0])

    class UNet(nn.Module):
        def __init__(self, c=32):
            super().__init__()

            def twice(i, o):
                return nn.Sequential(*[m for a in (i, o) for m in (nn.Conv2d(a, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU())])

            self.down = nn.ModuleList([twice(3, c), twice(c, 2 * c), twice(2 * c, 4 * c), twice(4 * c, 8 * c)])
            self.up = nn.ModuleList([nn.ConvTranspose2d(n * c, n * c // 2, 2, 2) for n in (8, 4, 2)])
            self.join = nn.ModuleList([twice(n * c, n * c // 2) for n in (8, 4, 2)])
            self.out = nn.Conv2d(c, 2, 1)

        def forward(self, x):
            kept = []
            for stage in self.down[:-1]:
                kept.append(stage(x))
                x = nn.functional.max_pool2d(kept[-1], 2)
            x = self.down[-1](x)
            for up, join in zip(self.up, self.join):
                x = join(torch.cat([up(x), kept.pop()], 1))
            return self.out(x)

    if name == "c3d":
        layers = [nn.Conv3d(3, 16, 3, padding=1), nn.BatchNorm3d(16), nn.ReLU(), nn.MaxPool3d(2), nn.Conv3d(16, 32, 3, padding=1),
                  nn.ReLU(), nn.MaxPool3d(2), nn.Conv3d(32, 64, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool3d(1), nn.Flatten()]
        return nn.Sequential(*layers, nn.Linear(64, 10)), torch.randn(1, 3, 8, 56, 56)
    if name == "lstm":
        return Recurrent(), input_of("words", 32)
    return (UNet(), input_of("image", 128)) if name == "unet" else (DeepLab(), input_of("image", 256))


def network(name):
    import torch
    import torchvision
    import transformers
    if name in IMAGES:
        how = dict(IMAGES[name])
        size = how.pop("size", 224)
        return getattr(torchvision.models, name)(weights=None, **how), input_of("image", size)
    if name in OTHERS:
        return other(name)
    model, config, how, example = TRANSFORMERS[name]
    settings = getattr(transformers, config)(**how)
    settings._attn_implementation = "eager"
    module = getattr(transformers, model)(settings)
    if name == "whisper_encoder":
        module = module.encoder

    class First(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.module = module

        def forward(self, x):
            return self.module(x)[0]

    return First(), input_of(*example)


def export(name, path):
    import torch
    torch.manual_seed(0)
    module, example = network(name)
    module.eval()
    for norm in module.modules():  # as trained ones are: neither 0 nor 1
        if isinstance(norm, torch.nn.BatchNorm2d):
            norm.running_mean.normal_(0, 0.1)
            norm.running_var.uniform_(0.5, 1.5)
    with torch.no_grad():
        torch.onnx.export(module, (example,), path, dynamo=True, verbose=False, external_data=True)


def main():
    names = [*IMAGES, *TRANSFORMERS, *OTHERS]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(names))
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--here", action="store_true", help="in this Python, which has what unseen.txt lists")
    args = parser.parse_args()
    for name in args.names:
        if name not in names:
            parser.error(f"{name} is none of {', '.join(names)}")
    if not args.here:
        from turns import environment
        sys.exit(subprocess.run([environment("unseen"), os.path.realpath(__file__), "--here", *sys.argv[1:]]).returncode)
    os.makedirs(args.output, exist_ok=True)
    for name in args.names or names:
        path = os.path.join(args.output, name + ".onnx")
        if not os.path.exists(path):
            export(name, path)
            print(path, flush=True)


if __name__ == "__main__":
    main()
