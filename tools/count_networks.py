#!/usr/bin/env python3
"""Counts convolutional networks layer by layer, for data/models/models.tsv.

    tools/count_networks.py            a table: parameters, multiply-adds, outputs of convolutions per sample

The layers are those of the papers and of the code that published rows were measured with (named beside each
network). In the table of models forward_flops_per_sample is twice the multiply-adds, and
activation_bytes_per_sample_fp16 is four bytes for each output of a convolution: it and its normalisation, kept once
in 16 bits. ResNet-50 is counted as a check: torchvision prints 25,557,032 parameters and 4.09 G multiply-adds.
"""
import math
from dataclasses import dataclass


@dataclass
class Net:
    params: int = 0
    macs: int = 0
    outputs: int = 0
    frozen_macs: int = 0  # of what has been trained before and is left as it is: forward only, nothing is kept
    frozen_outputs: int = 0
    winograd_macs: int = 0  # of 3 x 3 convolutions with stride 1 and without groups, for which there is a shorter way

    def freeze(self):
        """All layers so far."""
        self.frozen_macs, self.frozen_outputs = self.macs, self.outputs

    def conv(self, cin, cout, kernel, out, groups=1, bias=False, norm=True, kept=True, stride=1):
        """kernel: its number of elements (9 for 3 x 3); out: positions of the output."""
        weights = kernel * cin * cout // groups
        self.params += weights + (cout if bias else 0) + (2 * cout if norm else 0)
        self.macs += weights * out
        if kernel == 9 and stride == 1 and groups == 1:
            self.winograd_macs += weights * out
        if kept:
            self.outputs += cout * out
        return cout

    def linear(self, cin, cout, times=1):
        self.params += cin * cout + cout
        self.macs += cin * cout * times
        self.outputs += cout * times


def side(x, stride=2):
    return math.ceil(x / stride)


def bottlenecks(net, cin, width, cout, blocks, height, breadth, stride, groups=1, se=False):
    """Stages of ResNet v1.5: the 3 x 3 convolution has the stride. SE: two linear layers on the pooled channels."""
    for block in range(blocks):
        s = stride if block == 0 else 1
        before = height * breadth
        if s > 1:
            height, breadth = side(height, s), side(breadth, s)
        after = height * breadth
        net.conv(cin, width, 1, before)
        net.conv(width, width, 9, after, groups=groups, stride=s)
        net.conv(width, cout, 1, after)
        if block == 0:
            net.conv(cin, cout, 1, after)
        if se:
            net.linear(cout, cout // 16)
            net.linear(cout // 16, cout)
            net.outputs += cout * after  # the scaled map
        cin = cout
    return cin, height, breadth


def resnet(net, height, breadth, blocks=(3, 4, 6, 3), width=64, groups=1, se=False, last_stride=2, stages=4, frozen_stages=0):
    """Stem and stages; the maps of every stage as (channels, height, breadth). The stem is frozen with the first stages."""
    height, breadth = side(height), side(breadth)
    net.conv(3, 64, 49, height * breadth)
    height, breadth = side(height), side(breadth)
    cin, maps = 64, []
    for stage in range(stages):
        out = 256 << stage
        stride = 1 if stage == 0 else 2
        if stage == 2 and stages == 3:
            stride = last_stride
        cin, height, breadth = bottlenecks(net, cin, width << stage, out, blocks[stage], height, breadth, stride,
                                           groups, se)
        maps.append((cin, height, breadth))
        if stage + 1 == frozen_stages:
            net.freeze()
    return maps


def classifier(blocks=(3, 4, 6, 3), width=64, groups=1, se=False):
    net = Net()
    maps = resnet(net, 224, 224, blocks, width, groups, se)
    net.linear(maps[-1][0], 1000)
    return net


def basic_resnet(blocks):
    """ResNet-18 and ResNet-34: two 3 x 3 convolutions a block (arXiv 1512.03385)."""
    net = Net()
    net.conv(3, 64, 49, 112 * 112)
    cin, size = 64, 56
    for stage, count in enumerate(blocks):
        width = 64 << stage
        for block in range(count):
            stride = 2 if stage > 0 and block == 0 else 1
            size //= stride
            net.conv(cin, width, 9, size * size, stride=stride)
            net.conv(width, width, 9, size * size)
            if cin != width:
                net.conv(cin, width, 1, size * size)
            cin = width
    net.linear(512, 1000)
    return net


def vgg16():
    """arXiv 1409.1556, configuration D."""
    net = Net()
    cin, size = 3, 224
    for width, count in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(count):
            net.conv(cin, width, 9, size * size, bias=True, norm=False)
            cin = width
        size //= 2
    net.linear(512 * 49, 4096)
    net.linear(4096, 4096)
    net.linear(4096, 1000)
    return net


def ssd_heads(net, maps, anchors, classes):
    for (cin, height, breadth), boxes in zip(maps, anchors):
        out = height * breadth
        net.conv(cin, boxes * 4, 9, out, bias=True, norm=False)
        net.conv(cin, boxes * classes, 9, out, bias=True, norm=False)


def ssd_extra(net, cin, sizes, norm):
    """The layers behind the backbone: 1 x 1 and 3 x 3 each, down to one position."""
    maps = []
    before = 38
    for (middle, out), after in zip(((256, 512), (256, 512), (128, 256), (128, 256), (128, 256)), sizes):
        net.conv(cin, middle, 1, before * before, bias=not norm, norm=norm)
        net.conv(middle, out, 9, after * after, bias=not norm, norm=norm, stride=2)
        maps.append((out, after, after))
        cin, before = out, after
    return maps


def ssd300_resnet50():
    """NVIDIA DeepLearningExamples SSD v1.1: ResNet-50 to conv4 with stride 1 there, 300 x 300, 81 classes."""
    net = Net()
    maps = resnet(net, 300, 300, last_stride=1, stages=3)[-1:]
    # The backbone's outputs are 1,024 wide; the first of the layers behind it are 512 wide there.
    cin, extra, before = 1024, [], 38
    for (middle, out), after in zip(((256, 512), (256, 512), (128, 256), (128, 256), (128, 256)), (19, 10, 5, 3, 1)):
        net.conv(cin, middle, 1, before * before)
        net.conv(middle, out, 9, after * after, stride=2)
        extra.append((out, after, after))
        cin, before = out, after
    ssd_heads(net, maps + extra, (4, 6, 6, 6, 4, 4), 81)
    return net


def ssd300_resnet34():
    """MLPerf Training v0.6 to v1.1: ResNet-34 to conv4 with stride 1 there, 300 x 300, 81 classes."""
    net = Net()
    net.conv(3, 64, 49, 150 * 150)
    cin = 64
    for width, blocks, size in ((64, 3, 75), (128, 4, 38), (256, 6, 38)):
        for block in range(blocks):
            net.conv(cin, width, 9, size * size, stride=2 if block == 0 and width == 128 else 1)
            net.conv(width, width, 9, size * size)
            if block == 0 and cin != width:
                net.conv(cin, width, 1, size * size)
            cin = width
    maps = [(256, 38, 38)] + ssd_extra(net, 256, (19, 10, 5, 3, 1), False)
    ssd_heads(net, maps, (4, 6, 6, 6, 4, 4), 81)
    return net


def pyramid(net, maps, out=256):
    for cin, height, breadth in maps:
        net.conv(cin, out, 1, height * breadth, bias=True, norm=False)
        net.conv(out, out, 9, height * breadth, bias=True, norm=False)
    return [(out, h, b) for _, h, b in maps]


def retinanet():
    """MLPerf Training from v2.0: ResNeXt-50 32x4d, FPN, 800 x 800, 264 classes of OpenImages, 9 anchors.
    Stem and first stage stay as they were trained for images: three layers are trainable (torchvision's default)."""
    net = Net()
    maps = resnet(net, 800, 800, width=128, groups=32, frozen_stages=1)
    levels = pyramid(net, maps[1:])
    for cin in (2048, 256):  # P6 and P7
        size = side(levels[-1][1])
        net.conv(cin, 256, 9, size * size, bias=True, norm=False, stride=2)
        levels.append((256, size, size))
    shared = Net()
    for level, (cin, height, breadth) in enumerate(levels):
        head = Net()
        for _ in range(8):  # four for classes, four for boxes
            head.conv(cin, 256, 9, height * breadth, bias=True, norm=False)
        head.conv(256, 9 * 264, 9, height * breadth, bias=True, norm=False)
        head.conv(256, 9 * 4, 9, height * breadth, bias=True, norm=False)
        shared.macs += head.macs
        shared.winograd_macs += head.winograd_macs
        shared.outputs += head.outputs
        if level == 0:
            shared.params = head.params  # one head for all levels
    net.params += shared.params
    net.macs += shared.macs
    net.winograd_macs += shared.winograd_macs
    net.outputs += shared.outputs
    return net


def mask_rcnn():
    """ResNet-50 FPN at 800 x 1,344 (short side 800, padded to 32); training with 512 boxes, 128 of them with masks.
    Stem and first stage are frozen: FREEZE_CONV_BODY_AT 2 of maskrcnn-benchmark, which the MLPerf reference takes over."""
    net = Net()
    maps = resnet(net, 800, 1344, frozen_stages=1)
    levels = pyramid(net, maps)
    levels.append((256, side(levels[-1][1]), side(levels[-1][2])))
    head = Net()
    for cin, height, breadth in levels:
        one = Net()
        one.conv(cin, 256, 9, height * breadth, bias=True, norm=False)
        one.conv(256, 15, 1, height * breadth, bias=True, norm=False)
        head.params = one.params
        head.macs += one.macs
        head.winograd_macs += one.winograd_macs
        head.outputs += one.outputs
    boxes = Net()
    boxes.linear(256 * 7 * 7, 1024, 512)
    boxes.linear(1024, 1024, 512)
    boxes.linear(1024, 81 * 5, 512)
    masks = Net()
    for _ in range(4):
        masks.conv(256, 256, 9, 14 * 14 * 128, bias=True, norm=False)
    masks.conv(256, 256, 4, 14 * 14 * 128, bias=True, norm=False)  # transposed, stride 2: each input meets 2 x 2
    masks.conv(256, 81, 1, 28 * 28 * 128, bias=True, norm=False)
    for part in (head, boxes, masks):
        net.params += part.params
        net.macs += part.macs
        net.winograd_macs += part.winograd_macs
        net.outputs += part.outputs
    return net


def unet3d():
    """MLPerf Training (KiTS19): 32 to 320 filters over five halvings of a 128 x 128 x 128 crop, 3 classes."""
    net = Net()
    filters = (32, 64, 128, 256, 320)
    net.conv(1, 32, 27, 128**3)
    net.conv(32, 32, 27, 128**3)
    size, cin = 128, 32
    skips = [(32, 128)]
    for out in filters[1:] + (320,):
        size //= 2
        net.conv(cin, out, 27, size**3)
        net.conv(out, out, 27, size**3)
        skips.append((out, size))
        cin = out
    for out, size in reversed(skips[:-1]):
        net.conv(cin, out, 8, (size // 2) ** 3, bias=True, norm=False)  # transposed, stride 2
        net.outputs += out * (size**3 - (size // 2) ** 3)
        net.conv(2 * out, out, 27, size**3)
        net.conv(out, out, 27, size**3)
        cin = out
    net.conv(32, 3, 1, 128**3, bias=True, norm=False)
    return net


def unet():
    """arXiv 1505.04597, as it is built today: 64 to 1024 filters, padded, with batch norm, transposed convolutions; 3 channels of
    512 x 512 in, 2 classes out."""
    net = Net()
    filters, size, cin = (64, 128, 256, 512, 1024), 512, 3
    for level, out in enumerate(filters):
        if level:
            size //= 2
        net.conv(cin, out, 9, size**2)
        net.conv(out, out, 9, size**2)
        cin = out
    for out in reversed(filters[:-1]):
        net.conv(cin, out, 4, size**2, bias=True, norm=False)  # transposed, stride 2: each input meets 2 x 2
        net.outputs += 3 * out * size**2
        size *= 2
        net.conv(cin, out, 9, size**2)
        net.conv(out, out, 9, size**2)
        cin = out
    net.conv(64, 2, 1, size**2, bias=True, norm=False)
    return net


def diffusion_unet(text_width, side_of_latents=64):
    """The UNet of Stable Diffusion 1 and 2 (arXiv 2112.10752; block_out_channels 320, 640, 1280, 1280, two residual blocks
    a level, transformers on the upper three, 77 tokens of text): one pass over latents of an image of eight times that side."""
    net = Net()
    text = 77

    def residual(cin, cout, at):
        net.conv(cin, cout, 9, at, bias=True)
        net.linear(1280, cout)
        net.conv(cout, cout, 9, at, bias=True)
        if cin != cout:
            net.conv(cin, cout, 1, at, bias=True, norm=False)

    def transformer(c, at):
        for _ in range(6):  # in and out of the block, q, k, v and output of attention to itself
            net.linear(c, c, at)
        net.macs += 2 * at * at * c
        for _ in range(2):  # q and output of attention to the text
            net.linear(c, c, at)
        for _ in range(2):
            net.linear(text_width, c, text)
        net.macs += 2 * at * text * c
        net.linear(c, 8 * c, at)  # gated
        net.outputs += 4 * c * at
        net.linear(4 * c, c, at)

    widths, position = (320, 640, 1280, 1280), side_of_latents**2
    net.conv(4, 320, 9, position, bias=True, norm=False)
    net.linear(320, 1280)
    net.linear(1280, 1280)
    cin, skips = 320, [320]
    for level, width in enumerate(widths):
        for _ in range(2):
            residual(cin, width, position)
            if level < 3:
                transformer(width, position)
            cin = width
            skips.append(width)
        if level < 3:
            position //= 4
            net.conv(width, width, 9, position, bias=True, norm=False, stride=2)
            skips.append(width)
    residual(1280, 1280, position)
    transformer(1280, position)
    residual(1280, 1280, position)
    for level, width in reversed(list(enumerate(widths))):
        for _ in range(3):
            residual(cin + skips.pop(), width, position)
            if level < 3:
                transformer(width, position)
            cin = width
        if level > 0:
            position *= 4
            net.conv(width, width, 9, position, bias=True, norm=False)
    net.conv(320, 4, 9, position, bias=True, norm=False)
    return net


def gnmt():
    """Per token, half of them of the source: 4 encoder layers (the first in both directions) and 4 decoder layers of
    1,024 with attention fed to each, vocabulary 32,320 (NVIDIA DeepLearningExamples GNMT v2; arXiv 1609.08144)."""
    h, vocabulary = 1024, 32320
    lstm = lambda cin: 4 * h * (cin + h)
    encoder = 2 * lstm(h) + lstm(2 * h) + 2 * lstm(h)
    decoder = 4 * lstm(2 * h) + 2 * h * h
    net = Net()
    net.params = encoder + decoder + 2 * vocabulary * h
    net.macs = (encoder + decoder + vocabulary * h) // 2
    net.outputs = (9 * 6 * h + vocabulary) // 2  # gates, cell and output of nine LSTMs; logits
    return net


NETWORKS = {
    "resnet-18": lambda: basic_resnet((2, 2, 2, 2)),
    "resnet-34": lambda: basic_resnet((3, 4, 6, 3)),
    "resnet-50": classifier,
    "resnet-101": lambda: classifier((3, 4, 23, 3)),
    "resnet-152": lambda: classifier((3, 8, 36, 3)),
    "vgg-16": vgg16,
    "resnext-101-32x4d": lambda: classifier((3, 4, 23, 3), 128, 32),
    "se-resnext-101-32x4d": lambda: classifier((3, 4, 23, 3), 128, 32, True),
    "ssd300-resnet50": ssd300_resnet50,
    "ssd300-resnet34": ssd300_resnet34,
    "retinanet-resnext50": retinanet,
    "mask-rcnn-r50-fpn": mask_rcnn,
    "unet": unet,
    "unet-3d": unet3d,
    "stable-diffusion-1.5": lambda: diffusion_unet(768),
    "stable-diffusion-2": lambda: diffusion_unet(1024),
    "gnmt": gnmt,
}


def main():
    print("network\tparameters\tmultiply-adds\toutputs\tforward_flops_per_sample\tactivation_bytes_per_sample_fp16"
          "\tfrozen_flops\tfrozen_activation_bytes\twinograd_flops")
    for name, count in NETWORKS.items():
        net = count()
        print(name, net.params, net.macs, net.outputs, 2 * net.macs, 4 * net.outputs, 2 * net.frozen_macs,
              4 * net.frozen_outputs, 2 * net.winograd_macs, sep="\t")


if __name__ == "__main__":
    main()
