"""A small llama-shaped language model over bytes: RMSNorm, rotary positions, SwiGLU, an output head of its own.

All weights are views of one flat vector, all gradients of another: one all-reduce per step, and a checkpoint that can be
cut into slices at any place.
"""
import math

import torch
from torch import nn
from torch.nn import functional

VOCABULARY = 259  # <unk>, <s>, </s>, then the 256 bytes


def ffn_width(dim):
    return (dim * 8 // 3 + 31) // 32 * 32


class Norm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight


def rotate(x, cos, sin):
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2)


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.attn_norm, self.ffn_norm = Norm(dim), Norm(dim)
        self.q, self.k, self.v, self.o = (nn.Linear(dim, dim, bias=False) for _ in range(4))
        self.gate, self.up = (nn.Linear(dim, ffn_width(dim), bias=False) for _ in range(2))
        self.down = nn.Linear(ffn_width(dim), dim, bias=False)

    def forward(self, x, cos, sin, mask):
        batch, length, dim = x.shape
        h = self.attn_norm(x)
        q, k, v = (f(h).view(batch, length, self.heads, -1).transpose(1, 2) for f in (self.q, self.k, self.v))
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        weights = (q @ k.transpose(-1, -2) / math.sqrt(dim // self.heads) + mask).softmax(-1)
        x = x + self.o((weights @ v).transpose(1, 2).reshape(batch, length, dim))
        h = self.ffn_norm(x)
        return x + self.down(functional.silu(self.gate(h)) * self.up(h))


class Model(nn.Module):
    def __init__(self, dim, layers, heads, context, seed=0):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, dim)
        self.blocks = nn.ModuleList(Block(dim, heads) for _ in range(layers))
        self.norm, self.head = Norm(dim), nn.Linear(dim, VOCABULARY, bias=False)
        generator = torch.Generator().manual_seed(seed)
        for name, weight in self.named_parameters():
            if weight.dim() == 2:
                into_residual = name.endswith(("o.weight", "down.weight"))
                deviation = 0.02 / (math.sqrt(2 * layers) if into_residual else 1)
                weight.data.normal_(0, deviation, generator=generator)
        frequency = 10000.0 ** (-torch.arange(0, dim // heads, 2).float() / (dim // heads))
        angle = torch.outer(torch.arange(context).float(), frequency)
        self.register_buffer("cos", angle.cos(), False)
        self.register_buffer("sin", angle.sin(), False)
        self.register_buffer("mask", torch.full((context, context), float("-inf")).triu(1), False)

    def forward(self, tokens, targets):
        length = tokens.shape[1]
        h = self.embedding(tokens)
        for block in self.blocks:
            h = block(h, self.cos[:length], self.sin[:length], self.mask[:length, :length])
        return functional.cross_entropy(self.head(self.norm(h)).flatten(0, 1), targets.flatten())


def flatten(model, extra):
    """Moves the weights into one vector and the gradients into another that has `extra` more places at its end."""
    count = sum(weight.numel() for weight in model.parameters())
    weights, gradients, at = torch.empty(count), torch.zeros(count + extra), 0
    for weight in model.parameters():
        end = at + weight.numel()
        weights[at:end].copy_(weight.data.flatten())
        weight.data, weight.grad = weights[at:end].view_as(weight), gradients[at:end].view_as(weight)
        at = end
    return weights, gradients


def encode(text):
    """Bytes to tokens."""
    return torch.frombuffer(bytearray(text), dtype=torch.uint8).long() + 3
