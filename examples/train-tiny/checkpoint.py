"""Checkpoints as Stoker understands them, for any program: copy this file, or do the same in your own words.

A checkpoint is a folder step-000123 that appears under its name only when it is whole: everything is written and synced in
step-000123.tmp, manifest.json names each file with its size and SHA-256, then one rename. So a crash at any point leaves either
the whole checkpoint or a ".tmp" that nobody resumes from. Needs nothing but Python's standard library.
"""
import errno
import hashlib
import json
import os
import shutil

CHUNK = 1 << 20


class Damaged(Exception):
    """What lies there cannot be resumed from; the text says why."""


def sync_folder(path):
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_synced(path, chunks):
    """Writes and syncs a file; returns what the manifest says about it."""
    digest, size = hashlib.sha256(), 0
    with open(path, "wb") as file:
        for chunk in chunks:
            file.write(chunk)
            digest.update(chunk)
            size += len(memoryview(chunk).cast("B"))
        file.flush()
        os.fsync(file.fileno())
    return {"name": os.path.basename(path), "size": size, "sha256": digest.hexdigest()}


def begin(folder, step):
    """An empty step-000123.tmp; what a crash left of an earlier one is removed."""
    temporary = os.path.join(folder, f"step-{step:06d}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    os.makedirs(temporary)
    return temporary


def commit(temporary, manifest):
    """All files are written and synced: make it a checkpoint. Returns its folder."""
    write_synced(os.path.join(temporary, "manifest.json"), [json.dumps(manifest, indent=1).encode() + b"\n"])
    sync_folder(temporary)
    final, old = temporary.removesuffix(".tmp"), temporary.removesuffix(".tmp") + ".old"
    # One of the same step is there after falling back past a damaged one.
    shutil.rmtree(old, ignore_errors=True)
    if os.path.exists(final):
        os.rename(final, old)
    os.rename(temporary, final)
    sync_folder(os.path.dirname(final))
    shutil.rmtree(old, ignore_errors=True)
    return final


def mark_done(folder):
    """Tells Stoker that the work is finished even if the exit status gets lost."""
    write_synced(os.path.join(folder, "done"), [])
    sync_folder(folder)


def step_of(folder):
    """The step that the name tells, or None."""
    name = os.path.basename(os.path.normpath(folder))
    digits = name.removeprefix("step-")
    return int(digits) if name != digits and digits.isascii() and digits.isdigit() else None


def candidates(folder, resume_from):
    """resume_from, then every earlier checkpoint beside it or in `folder`, newest first."""
    if not resume_from:
        return []
    found, limit = [os.path.normpath(resume_from)], step_of(resume_from)
    for parent in dict.fromkeys(p for p in (os.path.dirname(found[0]), folder) if p):
        try:
            names = os.listdir(parent)
        except OSError:
            continue
        steps = [(step_of(name), os.path.join(parent, name)) for name in names]
        earlier = [each for each in steps if each[0] is not None and (limit is None or each[0] < limit)]
        found += [path for _, path in sorted(earlier, reverse=True) if path not in found]
    return found


def read_manifest(folder):
    """The manifest, after its form was checked; the files themselves are checked by read_file."""
    try:
        with open(os.path.join(folder, "manifest.json"), "rb") as file:
            manifest = json.loads(file.read(16 << 20))
    except OSError as problem:
        raise Damaged(f"manifest.json cannot be read: {os.strerror(problem.errno or errno.EIO)}") from None
    except ValueError:
        raise Damaged("manifest.json is no JSON") from None
    files = manifest.get("files") if isinstance(manifest, dict) else None
    if not isinstance(files, list) or not files or not isinstance(manifest.get("step"), int):
        raise Damaged("manifest.json has no step or no files")
    for entry in files:
        name = entry.get("name") if isinstance(entry, dict) else None
        if not isinstance(name, str) or name in ("", ".", "..") or "/" in name:
            raise Damaged("manifest.json names a file outside its folder")
    return manifest


def read_file(folder, entry):
    """The bytes of one file of the manifest, after size and SHA-256 were compared."""
    name = entry["name"]
    try:
        with open(os.path.join(folder, name), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size != entry.get("size"):
                raise Damaged(f"{name} has {size} bytes, the manifest says {entry.get('size')}")
            content = bytearray(size)
            view, at = memoryview(content), 0
            while at < size and (count := file.readinto(view[at:at + CHUNK])):
                at += count
    except OSError as problem:
        raise Damaged(f"{name} cannot be read: {os.strerror(problem.errno or errno.EIO)}") from None
    if hashlib.sha256(content).hexdigest() != entry.get("sha256"):
        raise Damaged(f"{name} is not what was written: its SHA-256 differs")
    return content
