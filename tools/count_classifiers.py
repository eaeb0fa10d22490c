#!/usr/bin/env python3
"""Counts classifiers of images that are not plain residual networks, layer by layer, for data/models/models.tsv.

    tools/count_classifiers.py         a table: parameters, multiply-adds, outputs, forward FLOP and activation bytes of an image

Layers are those of torchvision 0.25, whose printed parameters are the check. How much is kept of a multiply-add differs by
a factor of fifty between a depthwise and a dense convolution, so it is counted and not scaled from another network.
What is kept: each output of a convolution and of its normalisation in 16 bits; where the activation keeps its input beside
its output (SiLU behind a normalisation: MobileNet and EfficientNet), a third copy.
"""
import math

from count_networks import Net, classifier, side


def vgg19():
    net, cin, size = Net(), 3, 224
    for width, count in ((64, 2), (128, 2), (256, 4), (512, 4), (512, 4)):
        for _ in range(count):
            cin = net.conv(cin, width, 9, size * size, bias=True, norm=False)
        size //= 2
    net.linear(512 * 49, 4096)
    net.linear(4096, 4096)
    net.linear(4096, 1000)
    return net


def convnext(width, depths):
    """arXiv 2201.03545: depthwise 7 x 7, LayerNorm, two linear layers with a factor of four, a learned scale."""
    net, size, c = Net(), 56, width
    net.conv(3, c, 16, size * size, bias=True)
    for stage, depth in enumerate(depths):
        if stage > 0:
            net.params += 2 * c
            size //= 2
            net.conv(c, 2 * c, 4, size * size, bias=True, norm=False)
            c *= 2
        for _ in range(depth):
            net.conv(c, c, 49, size * size, groups=c, bias=True)
            net.linear(c, 4 * c, size * size)
            net.linear(4 * c, c, size * size)
            net.params += c
    net.params += 2 * c
    net.linear(c, 1000)
    return net


def swin(width, depths):
    """arXiv 2103.14030: attention within windows of 7 x 7, heads of 32."""
    net, size, c, window = Net(), 56, width, 49
    net.conv(3, c, 16, size * size, bias=True)
    for stage, depth in enumerate(depths):
        if stage > 0:
            net.params += 2 * 4 * c + 8 * c * c
            size //= 2
            net.macs += 8 * c * c * size * size
            net.outputs += 2 * c * size * size
            c *= 2
        tokens, heads = size * size, c // 32
        for _ in range(depth):
            net.linear(c, 3 * c, tokens)
            net.macs += 2 * window * c * tokens
            net.outputs += heads * window * tokens + c * tokens  # softmax and what it weighs
            net.linear(c, c, tokens)
            net.linear(c, 4 * c, tokens)
            net.linear(4 * c, c, tokens)
            net.params += 4 * c + 169 * heads
    net.params += 2 * c
    net.linear(c, 1000)
    return net


def densenet(blocks, growth=32):
    """arXiv 1608.06993: every layer reads what all before it made, which is put together anew and normalised each time."""
    net, size, c = Net(), 112, 64
    net.conv(3, 64, 49, size * size)
    size = side(size)
    for at, count in enumerate(blocks):
        for _ in range(count):
            net.params += 2 * c
            net.outputs += c * size * size
            net.conv(c, 4 * growth, 1, size * size)
            net.conv(4 * growth, growth, 9, size * size, norm=False)
            c += growth
        if at + 1 < len(blocks):
            net.params += 2 * c
            net.outputs += c * size * size
            net.conv(c, c // 2, 1, size * size, norm=False)
            c //= 2
            size //= 2
    net.params += 2 * c
    net.linear(c, 1000)
    return net


def channels(value, factor=1.0):
    """Multiples of eight, never a tenth below."""
    value *= factor
    near = max(8, int(value + 4) // 8 * 8)
    return near + 8 if near < 0.9 * value else near


def squeeze(net, c, inner, positions):
    net.linear(c, inner)
    net.linear(inner, c)
    net.outputs += c * positions  # the scaled map


def inverted(net, cin, cout, expand, kernel, stride, size, inner=0):
    """1 x 1 to more channels, depthwise, 1 x 1 to fewer (arXiv 1801.04381); inner: of squeeze and excitation, none where 0."""
    wide = expand if expand > 64 or expand % 8 == 0 else cin * expand
    if wide != cin:
        net.conv(cin, wide, 1, size * size)
    size = side(size, stride)
    net.conv(wide, wide, kernel * kernel, size * size, groups=wide, stride=stride)
    if inner:
        squeeze(net, wide, inner, size * size)
    net.conv(wide, cout, 1, size * size)
    return size


def mobilenet_v2():
    net, size, c = Net(), 112, 32
    net.conv(3, 32, 9, size * size, stride=2)
    for t, out, count, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):
        for at in range(count):
            size = inverted(net, c, out, t, 3, stride if at == 0 else 1, size)
            c = out
    net.conv(c, 1280, 1, size * size)
    net.linear(1280, 1000)
    return net


def mobilenet_v3_large():
    """arXiv 1905.02244, table 1; squeeze and excitation to a quarter."""
    net, size, c = Net(), 112, 16
    net.conv(3, 16, 9, size * size, stride=2)
    for kernel, wide, out, se, stride in ((3, 16, 16, 0, 1), (3, 64, 24, 0, 2), (3, 72, 24, 0, 1), (5, 72, 40, 1, 2), (5, 120, 40, 1, 1),
                                          (5, 120, 40, 1, 1), (3, 240, 80, 0, 2), (3, 200, 80, 0, 1), (3, 184, 80, 0, 1), (3, 184, 80, 0, 1),
                                          (3, 480, 112, 1, 1), (3, 672, 112, 1, 1), (5, 672, 160, 1, 2), (5, 960, 160, 1, 1), (5, 960, 160, 1, 1)):
        size = inverted(net, c, out, wide, kernel, stride, size, channels(wide / 4) if se else 0)
        c = out
    net.conv(c, 960, 1, size * size)
    net.linear(960, 1280)
    net.linear(1280, 1000)
    return net


def efficientnet(width, depth, size):
    """arXiv 1905.11946: the stages of B0, wider, deeper and on larger images."""
    net, size = Net(), side(size)
    c = channels(32, width)
    net.conv(3, c, 9, size * size, stride=2)
    for t, kernel, stride, out, count in ((1, 3, 1, 16, 1), (6, 3, 2, 24, 2), (6, 5, 2, 40, 2), (6, 3, 2, 80, 3), (6, 5, 1, 112, 3),
                                          (6, 5, 2, 192, 4), (6, 3, 1, 320, 1)):
        out = channels(out, width)
        for at in range(math.ceil(count * depth)):
            size = inverted(net, c, out, t, kernel, stride if at == 0 else 1, size, max(1, c // 4))
            c = out
    net.conv(c, 4 * c, 1, size * size)
    net.linear(4 * c, 1000)
    return net


def efficientnet_v2(stages, size, head=1280):
    """arXiv 2104.00298: the first stages are one dense 3 x 3 convolution in place of the depthwise pair."""
    net, size = Net(), side(size)
    c = stages[0][3]
    net.conv(3, c, 9, size * size, stride=2)
    for fused, t, stride, cin, out, count in stages:
        for at in range(count):
            s = stride if at == 0 else 1
            if not fused:
                size = inverted(net, c, out, c * t, 3, s, size, max(1, c // 4))
            elif t == 1:
                size = side(size, s)
                net.conv(c, out, 9, size * size, stride=s)
            else:
                size = side(size, s)
                net.conv(c, c * t, 9, size * size, stride=s)
                net.conv(c * t, out, 1, size * size)
            c = out
    net.conv(c, head, 1, size * size)
    net.linear(head, 1000)
    return net


V2_S = ((1, 1, 1, 24, 24, 2), (1, 4, 2, 24, 48, 4), (1, 4, 2, 48, 64, 4), (0, 4, 2, 64, 128, 6), (0, 6, 1, 128, 160, 9), (0, 6, 2, 160, 256, 15))
V2_M = ((1, 1, 1, 24, 24, 3), (1, 4, 2, 24, 48, 5), (1, 4, 2, 48, 80, 5), (0, 4, 2, 80, 160, 7), (0, 6, 1, 160, 176, 14), (0, 6, 2, 176, 304, 18),
        (0, 6, 1, 304, 512, 5))
V2_L = ((1, 1, 1, 32, 32, 4), (1, 4, 2, 32, 64, 7), (1, 4, 2, 64, 96, 7), (0, 4, 2, 96, 192, 10), (0, 6, 1, 192, 224, 19), (0, 6, 2, 224, 384, 25),
        (0, 6, 1, 384, 640, 7))

# name: how it is counted, and bytes kept for each output.
CLASSIFIERS = {
    "vgg-19": (vgg19, 4),
    "resnext-50-32x4d": (lambda: classifier((3, 4, 6, 3), 128, 32), 4),
    "resnext-101-32x8d": (lambda: classifier((3, 4, 23, 3), 256, 32), 4),
    "resnext-101-64x4d": (lambda: classifier((3, 4, 23, 3), 256, 64), 4),
    "wide-resnet-50-2": (lambda: classifier((3, 4, 6, 3), 128), 4),
    "wide-resnet-101-2": (lambda: classifier((3, 4, 23, 3), 128), 4),
    "densenet-121": (lambda: densenet((6, 12, 24, 16)), 4),
    "densenet-169": (lambda: densenet((6, 12, 32, 32)), 4),
    "densenet-201": (lambda: densenet((6, 12, 48, 32)), 4),
    "convnext-tiny": (lambda: convnext(96, (3, 3, 9, 3)), 4),
    "convnext-small": (lambda: convnext(96, (3, 3, 27, 3)), 4),
    "convnext-base": (lambda: convnext(128, (3, 3, 27, 3)), 4),
    "convnext-large": (lambda: convnext(192, (3, 3, 27, 3)), 4),
    "swin-tiny": (lambda: swin(96, (2, 2, 6, 2)), 4),
    "swin-small": (lambda: swin(96, (2, 2, 18, 2)), 4),
    "swin-base": (lambda: swin(128, (2, 2, 18, 2)), 4),
    "mobilenet-v2": (mobilenet_v2, 6),
    "mobilenet-v3-large": (mobilenet_v3_large, 6),
    "efficientnet-b0": (lambda: efficientnet(1.0, 1.0, 224), 6),
    "efficientnet-b1": (lambda: efficientnet(1.0, 1.1, 240), 6),
    "efficientnet-b2": (lambda: efficientnet(1.1, 1.2, 288), 6),
    "efficientnet-b3": (lambda: efficientnet(1.2, 1.4, 300), 6),
    "efficientnet-b4": (lambda: efficientnet(1.4, 1.8, 380), 6),
    "efficientnet-b5": (lambda: efficientnet(1.6, 2.2, 456), 6),
    "efficientnet-b6": (lambda: efficientnet(1.8, 2.6, 528), 6),
    "efficientnet-b7": (lambda: efficientnet(2.0, 3.1, 600), 6),
    "efficientnet-v2-s": (lambda: efficientnet_v2(V2_S, 384), 6),
    "efficientnet-v2-m": (lambda: efficientnet_v2(V2_M, 480), 6),
    "efficientnet-v2-l": (lambda: efficientnet_v2(V2_L, 480), 6),
}


def main():
    print("network\tparameters\tmultiply-adds\toutputs\tforward_flops_per_sample\tactivation_bytes_per_sample_fp16")
    for name, (count, kept) in CLASSIFIERS.items():
        net = count()
        print(name, net.params, net.macs, net.outputs, 2 * net.macs, kept * net.outputs, sep="\t")


if __name__ == "__main__":
    main()
