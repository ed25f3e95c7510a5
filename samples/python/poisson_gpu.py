"""poisson_gpu from Python: solves  alpha u - div(beta grad u) = f  for arrays of NumPy, CuPy, PyTorch, JAX and others.

One file to copy; it needs NumPy, and poisson_gpu.h and poisson_gpu.cu beside it, or a library made of them.

    import numpy, poisson_gpu
    f = numpy.ones((64, 64, 64))
    u, report = poisson_gpu.solve(f)                                  # unit box, u = 0 at its sides
    with poisson_gpu.Solver(f.shape, bc={'x': 'periodic', 'y': 'neumann', 'z_low': ('dirichlet', 1.0)}) as solver:
        u = solver.solve(f)                                           # as often as f changes
        print(solver.report.message)
        v = solver.gradient(u, 'x')                                   # at faces: one value more along x

Axes     x is the last axis of an array, the one without gaps, y the one before, z the one before that: (nz, ny, nx).
         Options of an axis are one value for all, a dict by name, or a sequence in the order of the shape.
Arrays   u and f are float64, or float32 with dtype='float32'. Windows of larger arrays are taken as they are, where
         their last axis has no gaps; other inputs are copied. An array on a GPU is solved for there, on its framework's
         current stream, without waiting: solver.report waits. Others are solved for on a GPU, if there is one, or on
         the CPU. The solver keeps a handle, with its memory, for each of the 16 layouts that it met last; a graph that
         captured a solve needs its handle.
Faces    bc: a kind for all faces, or a dict by axis ('x') or face ('x_low', 'x_high'): 'dirichlet', 'neumann',
         'periodic', 'open' (empty space beyond), 'spectral' (the same on all sides, of a smooth f: PG_OPEN_SPECTRAL),
         (kind, g), or ('robin', a, b, g): a u + b du/dn = g. g is a number or an array over the face, lower axes last: (nz, ny) for x, (nz, nx) for y, (ny, nx) for z, of a batch with its
         axis before them; where u is (host or GPU), without gaps, and kept by reference.
Images   Channels come first, numpy.moveaxis(image, -1, 0), and batch takes them at once. Pixels: centring='cell', h=1;
         f is minus the divergence of the gradients that are wanted, and its sum 0 where all borders are 'neumann'.
Errors   ValueError, MemoryError or RuntimeError in the library's own words. A solve that runs and fails is none: its
         report says so, and what it did not write is NaN in a new u.
Threads  that share a Solver take turns; solver.report is of the last solve of any. A process that is forked from one
         whose solves had threads is refused: start it by the method 'spawn' of multiprocessing. On a CPU, beside other
         programs, set OMP_WAIT_POLICY=passive before Python starts: OpenMP's threads then sleep while they wait.

The library   is POISSON_GPU_LIBRARY, or libpoisson_gpu.so beside this file; or it is made once, in a cache folder, by
         nvcc (where it and a GPU are found) or c++, from the two files in POISSON_GPU_SOURCES, beside this file, in the
         current folder, or two folders up from this file. CXX names another compiler, with options if need be. Its
         structs are compared with those below at import.
"""
import collections.abc
import contextlib
import ctypes
import dataclasses
import functools
import hashlib
import numbers
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
import warnings
from ctypes import POINTER, byref, c_char, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint, c_void_p

import numpy

# ---- The header's constants ----

OK, ERROR_ARGUMENT, ERROR_UNSUPPORTED, ERROR_MEMORY, ERROR_NO_DEVICE, ERROR_CUDA, ERROR_COMM = range(7)
OUTCOMES = ('not run', 'converged', 'completed', 'iteration limit', 'stagnated', 'diverged', 'not a number',
            'cancelled', 'resonance', 'breakdown', 'running')
KINDS = {'dirichlet': 0, 'neumann': 1, 'robin': 2, 'periodic': 3, 'open': 4,
         'spectral': 5}
FLAGS = {
    'F64': 0x1, 'F32': 0x2, 'MIXED': 0x4, 'JACOBI': 0x10, 'RBGS': 0x20, 'SOR': 0x40,
    'VCYCLE': 0x80, 'WCYCLE': 0x100, 'FMG': 0x200, 'DIRECT': 0x400, 'FASTEST': 0x800, 'CG': 0x1000,
    'PIPECG': 0x2000, 'BICGSTAB': 0x4000, 'PIPEBICGSTAB': 0x8000, 'SYMMETRIC': 0x100000, 'UPWIND': 0x8000000,
    'KEEP_CYCLES': 0x4000000, 'COARSEN_CELLS': 0x10000000}
SMOOTHERS = {'SMOOTH_RBGS': 0x10000, 'SMOOTH_JACOBI': 0x20000, 'SMOOTH_CHEBYSHEV': 0x40000, 'SMOOTH_LINES': 0x80000}
PRECONDS = {'PRECOND_CYCLE': 0x200000, 'PRECOND_DIAGONAL': 0x400000, 'PRECOND_NONE': 0x800000,
            'PRECOND_AINV': 0x1000000, 'PRECOND_AINV2': 0x2000000, 'PRECOND_DIRECT': 0x8}
ROBUST = {'auto': 0, 'random': 1, 'labyrinth': 2, 'both': 3, 'off': -1}
FLUID, SOLID, AIR = range(3)
NORMS = {'l2': 0, 'l2_plain': 1, 'max': 2, 'l1': 3}
NONE = -1
HISTORY = 128
CANCEL = 'cancel'    # what a monitor returns to end the solve

# ---- The header's structs ----


def _struct(name, *fields):
    return type(name, (ctypes.Structure,), {'_fields_': fields})


pg_face = _struct('pg_face', ('kind', c_int), ('value', c_double),
                  ('array', c_void_p), ('a', c_double), ('b', c_double))
pg_cell_value = _struct('pg_cell_value', ('cell', c_int * 3), ('face', c_int), ('value', c_double), ('theta', c_double))
pg_cells = _struct(
    'pg_cells', ('mask', c_void_p), ('stride_mask', c_int64 * 2), ('beta_face', c_void_p * 3), ('beta_cell', c_void_p),
    ('openness', c_void_p * 3), ('alpha_cell', c_void_p), ('air_value', POINTER(pg_cell_value)), ('air_values', c_int),
    ('solid_flux', POINTER(pg_cell_value)), ('solid_fluxes', c_int))
pg_allocator = _struct('pg_allocator', ('alloc', c_void_p), ('free', c_void_p), ('user', c_void_p))
pg_rank_message = _struct('pg_rank_message', ('peer', c_int), ('send', c_void_p), ('receive', c_void_p),
                     ('send_bytes', c_size_t), ('receive_bytes', c_size_t))
pg_transport = _struct('pg_transport', ('struct_size', c_size_t), ('rank', c_int), ('ranks', c_int),
                       ('user', c_void_p), ('gather', c_void_p), ('exchange', c_void_p), ('abort', c_void_p))
pg_comm = _struct('pg_comm', ('kind', c_int), ('handle', c_void_p))
pg_desc = _struct(
    'pg_desc',
    ('struct_size', c_size_t), ('n', c_int * 3), ('dim', c_int), ('centring', c_int * 3), ('h', c_double * 3),
    ('coord', c_void_p * 3), ('weight', c_void_p * 3), ('conductance', c_void_p * 3), ('face', pg_face * 6),
    ('alpha', c_double), ('beta', c_double), ('cells', pg_cells), ('robust', c_int), ('velocity', c_double * 3),
    ('batch', c_int), ('stride_u', c_int64 * 3), ('stride_f', c_int64 * 3), ('memory', c_int), ('flags', c_uint),
    ('smoother', c_int), ('precond', c_int), ('omega', c_double), ('nu_pre', c_int), ('nu_post', c_int), ('fmg_cycles', c_int), ('coarsest', c_int), ('inner_cycles', c_int),
    ('backend', c_int), ('device', c_int), ('stream', c_void_p), ('workspace', c_void_p),
    ('workspace_bytes', c_size_t), ('allocator', pg_allocator), ('comm', pg_comm),
    ('lo', c_int * 3), ('hi', c_int * 3), ('time_limit', c_double))
pg_report = _struct(
    'pg_report', ('outcome', c_int), ('iterations', c_int), ('rhs_norm', c_double), ('first_residual', c_double),
    ('residual', c_double), ('floor', c_double), ('factor', c_double), ('removed_mean', c_double),
    ('milliseconds', c_double), ('history_count', c_int), ('history', c_double * HISTORY), ('backend', c_int),
    ('problem', c_int), ('message', c_char * 160), ('method', c_char * 96), ('accelerated', c_int), ('singular_components', c_int),
    ('warning', c_char * 160))
pg_monitor = ctypes.CFUNCTYPE(c_int, c_void_p, POINTER(pg_report))
pg_stop = _struct(
    'pg_stop',
    ('struct_size', c_size_t), ('rtol', c_double), ('atol', c_double), ('relative_to_first', c_int),
    ('min_iter', c_int), ('max_iter', c_int), ('check', c_int), ('norm', c_int), ('guess', c_int),
    ('monitor', pg_monitor), ('user', c_void_p))
pg_abi_entry = _struct('pg_abi_entry', ('name', c_char_p), ('offset', c_size_t), ('size', c_size_t))
STRUCTS = (pg_face, pg_cell_value, pg_cells, pg_allocator, pg_rank_message, pg_transport, pg_comm, pg_desc, pg_report, pg_stop)

# ---- The library ----


def _sources():
    here, named = os.path.dirname(os.path.abspath(__file__)), os.environ.get('POISSON_GPU_SOURCES')
    for folder in [named] if named else [here, os.getcwd(), os.path.dirname(os.path.dirname(here))]:
        files = [os.path.join(folder, name) for name in ('poisson_gpu.cu', 'poisson_gpu.h')]
        if all(map(os.path.isfile, files)):
            return files
    if named:
        raise ImportError('POISSON_GPU_SOURCES is %s, where poisson_gpu.cu and poisson_gpu.h are not both' % named)
    raise ImportError('poisson_gpu.cu and poisson_gpu.h were not found: put them beside %s, or name a library in '
                      'POISSON_GPU_LIBRARY' % os.path.basename(__file__))


def _compiler():
    """The command, as the header has it."""
    nvcc = shutil.which('nvcc') or shutil.which('/usr/local/cuda/bin/nvcc')
    smi = shutil.which('nvidia-smi')
    if nvcc and smi and subprocess.run([smi, '-L'], capture_output=True).stdout.strip():
        return [nvcc, '-O3', '-std=c++17', '-arch=native', '-Xcompiler', '-fopenmp,-fPIC', '-shared']
    named = shlex.split(os.environ.get('CXX', ''))
    for words in [named] if named else [['c++'], ['g++'], ['clang++']]:
        if shutil.which(words[0]):
            return words + ['-x', 'c++', '-std=c++17', '-O3', '-fopenmp', '-fPIC', '-shared']
    if named:
        raise ImportError('CXX is %s, but there is no %s' % (os.environ['CXX'], named[0]))
    raise ImportError('no compiler (nvcc or c++) was found to make the library; name one in CXX, or name a library in '
                      'POISSON_GPU_LIBRARY')


def _build():
    """The library from the cache, or made and put there."""
    files, command = _sources(), _compiler()
    digest = hashlib.sha256(' '.join(command).encode())
    for name in files:
        with open(name, 'rb') as file:
            digest.update(file.read())
    cache = os.environ.get('XDG_CACHE_HOME') or os.path.join(os.path.expanduser('~'), '.cache')
    folder = os.path.join(cache, 'poisson_gpu')
    target = os.path.join(folder, digest.hexdigest()[:16] + '.so')
    if os.path.isfile(target):
        return target
    try:
        os.makedirs(folder, exist_ok=True)
        writable = os.access(folder, os.W_OK)
    except OSError:
        writable = False
    if not writable:
        raise ImportError('the library cannot be put into %s; name another folder in XDG_CACHE_HOME, or a library in '
                          'POISSON_GPU_LIBRARY' % folder)
    part = '%s.%d' % (target, os.getpid())
    command += [files[0], '-o', part]
    print('poisson_gpu: once, some minutes with nvcc, else about one:', ' '.join(command), file=sys.stderr, flush=True)
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise ImportError('the library could not be made:\n' + done.stderr)
    os.replace(part, target)
    return target


def _check_abi(library, path):
    """Compares every struct and field with what the library has."""
    try:
        library.pg_abi.restype = POINTER(pg_abi_entry)
    except AttributeError:
        raise ImportError('%s has no pg_abi: it is too old for this poisson_gpu.py' % path) from None
    theirs, entries = {}, library.pg_abi()
    q = 0
    while entries[q].name:
        theirs[entries[q].name.decode()] = (entries[q].offset, entries[q].size)
        q += 1
    ours = {}
    for struct in STRUCTS:
        ours[struct.__name__] = (0, ctypes.sizeof(struct))
        for field in struct._fields_:
            place = getattr(struct, field[0])
            ours['%s.%s' % (struct.__name__, field[0])] = (place.offset, place.size)
    names = [name for name in theirs if name.split('.')[0] in {struct.__name__ for struct in STRUCTS}]
    differing = [name for name in (*ours, *names) if ours.get(name) != theirs.get(name)]
    if differing:    # the first one that one of both lacks, which moves others, or else the first field
        name = min(differing, key=lambda name: ('.' not in name, name in ours and name in theirs))
        mine, other = ('%s of %d bytes at %d' % ((name,) + place[::-1]) if place else 'no ' + name
                       for place in (ours.get(name), theirs.get(name)))
        raise ImportError('poisson_gpu.py has %s, but %s has %s: take both from the same version' % (mine, path, other))


def _load():
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'libpoisson_gpu.so')
    path = os.environ.get('POISSON_GPU_LIBRARY') or (beside if os.path.isfile(beside) else _build())
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError('%s cannot be loaded: %s' % (path, error)) from None
    _check_abi(library, path)
    handle, array, number = c_void_p, c_void_p, POINTER(c_double)
    for name, arguments in {
            'create': (POINTER(pg_desc), POINTER(handle)), 'workspace_bytes': (POINTER(pg_desc), POINTER(c_size_t)),
            'query_desc': (handle, POINTER(pg_desc)), 'solve': (handle, array, array, c_void_p),
            'get_report': (handle, POINTER(pg_report)), 'set_faces': (handle, POINTER(pg_face)),
            'set_alpha': (handle, c_double), 'set_cells': (handle, POINTER(pg_cells)), 'set_stream': (handle, c_void_p),
            'smooth': (handle, array, array, c_int), 'cycle': (handle, array, array, c_int),
            'apply': (handle, array, array),
            'gradient': (handle, array, c_int, array, c_int), 'residual': (handle, array, array, array),
            'norm': (handle, array, c_int, number), 'dot': (handle, array, array, number),
            'get_parts': (handle, array, array, POINTER(c_int), number, number)}.items():
        getattr(library, 'pg_' + name).argtypes = arguments
    library.pg_destroy.argtypes, library.pg_destroy.restype = (handle,), None
    library.pg_last_error.argtypes, library.pg_last_error.restype = (handle,), c_char_p
    library.pg_version.restype = c_char_p
    return library


_library = _load()
_pg_solve = _library.pg_solve
version = _library.pg_version().decode()


def _in_python_terms(text):
    """An error text of the library with the names that this file has."""
    if text.startswith('flags'):
        text = re.sub(r'0x[0-9a-f]+', lambda bits: ' | '.join(
            name for name, bit in FLAGS.items() if bit & int(bits[0], 16)) or bits[0], text)
    text = re.sub(r'(cell|face) \((\d+), (\d+), (\d+)\)', r'\1 (x \2, y \3, z \4)', text)
    return re.sub(r'\b(n|centring|h|coord|weight|conductance|velocity|beta_face|openness)\[([012])\]',
                  lambda found: '%s of %s' % (found[1], 'xyz'[int(found[2])]), text)


def _check(status, handle):
    if status != OK:
        text = _in_python_terms(_library.pg_last_error(handle).decode())
        kind = {ERROR_ARGUMENT: ValueError, ERROR_UNSUPPORTED: ValueError, ERROR_MEMORY: MemoryError}
        raise kind.get(status, RuntimeError)(text)


# ---- Arrays of any framework ----
#
# What is known of an array is its address, its layout and its stream (0: the default one). Arrays of equal shape,
# strides, type and device share one layout object: names and checks, which follow from those, are worked out for the
# first of them, and later calls find them. A device of _HOST is host memory.

_HOST = -1
_describers = {}    # types of arrays to functions that describe them


class _Layout:
    """Shape, strides in elements (None: they are no whole numbers), name of the type, device, whether one may write."""

    def __init__(self, shape, strides, dtype, device, writable):
        self.shape, self.strides, self.dtype = shape, strides, dtype
        self.device, self.writable = device, writable


@functools.lru_cache(maxsize=1024)
def _layout(shape, strides, dtype, device, writable):
    """Of what NumPy's protocols say: strides in bytes (None: no gaps), what numpy.dtype takes."""
    dtype = numpy.dtype(dtype)
    size, name = dtype.itemsize, dtype.name if dtype.isnative else 'byte-swapped ' + dtype.name
    if strides is None:
        strides = _packed(shape)
    else:
        strides = tuple(s // size for s in strides) if not any(s % size for s in strides) else None
    return _Layout(tuple(shape), strides, name, device, writable)


@functools.lru_cache(maxsize=1024)
def _plain_layout(shape, strides, dtype, device, writable):
    """The same with strides in elements, and a type whose last word is its name."""
    return _Layout(tuple(shape), strides or _packed(shape), str(dtype).rpartition('.')[2], device, writable)


def _packed(shape):
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= n
    return tuple(reversed(strides))


_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.argtypes, _capsule_pointer.restype = (ctypes.py_object, c_char_p), c_void_p
_array_interface = _struct('_array_interface', ('two', c_int), ('ndim', c_int), ('kind', c_char), ('itemsize', c_int),
                           ('flags', c_int), ('shape', c_void_p), ('strides', c_void_p), ('data', c_void_p))


def _of_numpy(x):
    capsule = x.__array_struct__    # half the time of x.ctypes.data
    address = _array_interface.from_address(_capsule_pointer(capsule, None)).data
    return address, _layout(x.shape, x.strides, x.dtype, _HOST, x.flags.writeable), 0


def _of_torch(x):
    index, stream = _HOST, 0
    if x.is_cuda:
        index, torch = x.get_device(), sys.modules['torch']
        raw = getattr(torch._C, '_cuda_getCurrentRawStream', None)    # makes no object of the stream
        stream = raw(index) if raw else torch.cuda.current_stream(index).cuda_stream
    elif not x.is_cpu:
        raise ValueError('a tensor on %s is neither in host memory nor on a CUDA device' % x.device)
    if x.is_neg():
        raise ValueError('a tensor that is a negated view has other values in memory; call resolve_neg() on it first')
    return x.data_ptr(), _plain_layout(x.shape, x.stride(), x.dtype, index, True), stream


def _of_cupy(x):
    data = x.data
    device = data.device_id
    stream = sys.modules['cupy'].cuda.get_current_stream(device).ptr
    return data.ptr, _layout(x.shape, x.strides, x.dtype, device, True), stream


def _of_cuda_interface(x, written=True):
    view = x.__cuda_array_interface__
    address, read_only = view['data']
    shape, strides = tuple(view['shape']), view.get('strides')
    layout = shape, strides if strides is None else tuple(strides), view['typestr']
    stream = view.get('stream') or 0
    stream = 0 if stream == 1 else stream    # two names of the legacy default stream
    dlpack = getattr(x, '__dlpack_device__', None)
    device = int(dlpack()[1]) if dlpack else 0
    return address, _layout(*layout, device, written and not read_only), stream


def _of_jax(x):
    x.block_until_ready()    # XLA's streams are not ours to wait on
    if hasattr(x, '__cuda_array_interface__') and next(iter(x.devices())).platform in ('gpu', 'cuda'):
        return _of_cuda_interface(x, False)
    view = numpy.asarray(x)
    view.flags.writeable = False    # it may be a copy
    return _of_numpy(view)


_dl_tensor = _struct('_dl_tensor', ('data', c_void_p), ('device_type', c_int), ('device', c_int), ('ndim', c_int),
                     ('code', ctypes.c_uint8), ('bits', ctypes.c_uint8), ('lanes', ctypes.c_uint16),
                     ('shape', POINTER(c_int64)), ('strides', POINTER(c_int64)), ('byte_offset', ctypes.c_uint64))


def _of_dlpack(x):
    kind, device = x.__dlpack_device__()
    if kind not in (1, 2, 3, 13):    # host, CUDA, pinned host, CUDA managed
        raise ValueError('an array on a device of DLPack kind %d is neither in host memory nor on a CUDA device' % kind)
    on_device = kind in (2, 13)
    capsule = x.__dlpack__(stream=1) if on_device else x.__dlpack__()    # 1: ready for the legacy default stream
    tensor = _dl_tensor.from_address(_capsule_pointer(capsule, b'dltensor'))
    shape = tuple(tensor.shape[:tensor.ndim])
    strides = tuple(tensor.strides[:tensor.ndim]) if tensor.strides else None
    name = {0: 'int', 1: 'uint', 2: 'float', 6: 'bool'}.get(tensor.code, 'unknown') + str(tensor.bits)
    layout = _plain_layout(shape, strides, name, int(device) if on_device else _HOST, True)
    return (tensor.data or 0) + tensor.byte_offset, layout, 0


def _of_buffer(x):
    return _of_numpy(numpy.asarray(memoryview(x)))


def _describer(x):
    """The function that describes arrays of this type."""
    kind = type(x)
    root = kind.__module__.split('.')[0]
    if isinstance(x, numpy.ma.MaskedArray):
        raise ValueError('a masked array of NumPy would lose its mask; call filled(value) on it first')
    if isinstance(x, numpy.ndarray):
        found = _of_numpy
    elif any(base.__module__ == 'torch' for base in kind.__mro__):
        found = _of_torch
    elif root == 'cupy':
        found = _of_cupy
    elif root in ('jax', 'jaxlib'):
        found = _of_jax
    elif hasattr(x, '__cuda_array_interface__'):
        found = _of_cuda_interface
    elif hasattr(x, '__dlpack__'):
        found = _of_dlpack
    else:
        try:
            memoryview(x)
        except TypeError:
            raise ValueError('%s is no array: it has neither __cuda_array_interface__, nor __dlpack__, nor the buffer '
                             'protocol; try numpy.asarray' % kind.__name__) from None
        found = _of_buffer
    _describers[kind] = found
    return found


def _describe(x):
    return (_describers.get(type(x)) or _describer(x))(x)


def _described(name, x):
    """The same; what is no array is refused by name."""
    try:
        return _describe(x)
    except ValueError as error:
        raise ValueError('%s: %s' % (name, error)) from None


def _contiguous(x):
    """A copy without gaps, of the same framework."""
    found = _describers.get(type(x)) or _describer(x)
    if found is _of_torch:
        return x.contiguous()
    if found is _of_cupy:
        import cupy
        return cupy.ascontiguousarray(x)
    if found in (_of_numpy, _of_buffer):
        return numpy.ascontiguousarray(x)
    raise ValueError('strides do not fit (the last axis must have no gaps); make a contiguous copy first')


def _copied(x):
    """The same in memory of its own; a GPU array that has no copy() stays as it is."""
    found = _describers.get(type(x)) or _describer(x)
    if found is _of_torch:
        return x.detach().clone(memory_format=sys.modules['torch'].contiguous_format)
    if _describe(x)[1].device != _HOST:
        return x.copy() if hasattr(x, 'copy') else x    # JAX has it
    return numpy.array(numpy.from_dlpack(x) if found is _of_dlpack else x, order='C')


def _new(shape, like, dtype):
    """A new array like another one: of the same framework, on the same device. JAX gets its own in _returned.

    It is full of NaN, for a solve that ends early may leave u, or the u of some problems of a batch, untouched.
    """
    found = _describers.get(type(like)) or _describer(like)
    if found is _of_torch:
        return like.new_full(shape, numpy.nan)
    if found is _of_cupy:
        import cupy
        with like.device:
            return cupy.full(shape, numpy.nan, dtype)
    device = _HOST if found in (_of_numpy, _of_buffer) else _describe(like)[1].device
    return numpy.full(shape, numpy.nan, dtype) if device == _HOST else _new_on(device, shape, dtype)


def _new_on(device, shape, dtype):
    """GPU memory from CuPy or PyTorch, for those who have arrays of neither, ready for every stream."""
    try:
        import cupy
        with cupy.cuda.Device(device):
            new = cupy.full(shape, numpy.nan, dtype)
            cupy.cuda.get_current_stream().synchronize()
            return new
    except Exception:    # not installed, or of no use here
        pass
    try:
        import torch
        new = torch.full(shape, numpy.nan, dtype=getattr(torch, dtype), device='cuda:%d' % device)
        torch.cuda.current_stream(device).synchronize()
        return new
    except Exception:
        raise ValueError('a new array on the GPU takes CuPy or PyTorch; install one, or give the result memory of your '
                         'own (u=..., out=...)') from None


def _new_labels(shape, like):
    """A new array of ints beside another one: of NumPy, or on the GPU of PyTorch or CuPy."""
    found = _describers.get(type(like)) or _describer(like)
    if found is _of_torch:
        return like.new_full(shape, -1, dtype=sys.modules['torch'].int32)
    if found is _of_cupy:
        import cupy
        with like.device:
            return cupy.full(shape, -1, 'int32')
    if found not in (_of_numpy, _of_buffer) and _describe(like)[1].device != _HOST:
        raise ValueError('labels on the GPU take an array of CuPy or PyTorch; convert x to one')
    return numpy.full(shape, -1, 'int32')


def _returned(array, like):
    """The result in the framework of the input."""
    if (_describers.get(type(like)) or _describer(like)) is not _of_jax:
        return array
    import jax
    return jax.numpy.asarray(array) if isinstance(array, numpy.ndarray) else jax.dlpack.from_dlpack(array)


# ---- Reports ----


@dataclasses.dataclass(frozen=True)
class Report:
    """What the header says of pg_report."""
    outcome: str
    iterations: int
    rhs_norm: float
    first_residual: float
    residual: float
    floor: float
    factor: float
    removed_mean: float
    milliseconds: float
    history: tuple
    backend: str
    problem: int
    message: str
    method: str
    accelerated: bool
    singular_components: int
    warning: str

    @property
    def converged(self):
        return self.outcome == 'converged'


def _report_of(c):
    values = {field.name: getattr(c, field.name) for field in dataclasses.fields(Report)}
    values.update(outcome=OUTCOMES[c.outcome], history=tuple(c.history[:min(c.history_count, HISTORY)]),
                  backend=('auto', 'cuda', 'cpu')[c.backend], message=c.message.decode(), method=c.method.decode(),
                  accelerated=bool(c.accelerated), warning=c.warning.decode())
    return Report(**values)


# ---- The solver ----


def _real(name, value):
    """A number, also one of NumPy's or an array without axes."""
    try:
        if isinstance(value, numbers.Real) or getattr(value, 'shape', None) == ():
            return float(value)
    except (TypeError, ValueError):
        pass
    hint = '; fields take %s_cell%s' % (name, ', beta_face' * (name == 'beta')) if name in ('alpha', 'beta') else ''
    raise ValueError('%s is %r; it must be a number%s' % (name, value, hint))


def _whole(name, value):
    """A number without a fraction that C's int holds."""
    number = _real(name, value)
    if not (abs(number) < 2**31 and number == int(number)):
        raise ValueError('%s is %r; it must be a whole number below 2^31' % (name, value))
    return int(number)


def _choice(name, value, choices):
    if not isinstance(value, str) or value not in choices:
        raise ValueError('%s is %r; it must be one of %s' % (name, value, ', '.join(choices)))
    return choices[value]


def _short(names):
    return {name.split('_', 1)[1].lower(): value for name, value in names.items()}


_FIELDS = {'alpha': _real, 'beta': _real, 'omega': _real, 'robust': lambda name, value: _choice(name, value, ROBUST), 'nu_pre': _whole, 'nu_post': _whole,
           'fmg_cycles': _whole, 'coarsest': _whole, 'inner_cycles': _whole,
           'smoother': lambda name, value: _choice(name, value, _short(SMOOTHERS)),
           'precond': lambda name, value: _choice(name, value, _short(PRECONDS))}
_STOPS = {'rtol': lambda name, value: NONE if value is None else _real(name, value), 'atol': _real,
          'relative_to_first': _whole, 'min_iter': _whole, 'max_iter': _whole, 'check': _whole,
          'norm': lambda name, value: _choice(name, value, NORMS),
          'guess': lambda name, value: _choice(name, value, {'default': 0, 'zero': 1, 'u': 2})}


@functools.lru_cache(maxsize=256)
def _stop(**options):
    """The pg_stop of options of solve: only read, for many calls have one."""
    stop = pg_stop()
    for name, value in options.items():
        if name not in _STOPS:
            raise ValueError('%s is no option of solve; there are %s, monitor' % (name, ', '.join(_STOPS)))
        if hasattr(value, 'shape') and not isinstance(value, (numpy.generic, numpy.ndarray)):    # it may change
            raise ValueError('%s is an array; give float(%s)' % (name, name))
        setattr(stop, name, _STOPS[name](name, value))
    return stop


_COEFFICIENTS = ('beta_face', 'beta_cell', 'openness', 'alpha_cell')
_OUTSIDE = tuple(KINDS[kind] for kind in ('dirichlet', 'open', 'spectral'))    # of nodes the first is inside of such a side
_HANDLES = 16    # that a Solver keeps


def _locked(method):
    """Threads that share a Solver take turns."""
    @functools.wraps(method)
    def call(self, *arguments, **options):
        if _forked:
            raise RuntimeError("this process was forked from one that had used OpenMP's threads, without which a solve "
                               "would wait for ever; start it by the method 'spawn' of multiprocessing")
        with self._lock:
            return method(self, *arguments, **options)
    return call


_threads_ran = False    # those of OpenMP, in this process
_forked = False         # from a process where they had


def _after_fork():
    global _forked
    _forked = _threads_ran


if hasattr(os, 'register_at_fork'):
    os.register_at_fork(after_in_child=_after_fork)


class _Handle:
    """A pg_solver for one layout of u and f on one device."""

    def __init__(self, desc, device, strides_u, strides_f, stream):
        global _threads_ran
        points = desc.n[0] * desc.n[1] * desc.n[2] * max(desc.batch, 1)
        _threads_ran = _threads_ran or points > 32768 or any((desc.cells.mask, *desc.coord, *desc.weight))
        self.desc = pg_desc.from_buffer_copy(desc)
        self.stream = stream
        self.desc.stride_u[:], self.desc.stride_f[:] = strides_u, strides_f
        self.desc.memory = 0 if device == _HOST else 1
        if device != _HOST:
            self.desc.backend, self.desc.device, self.desc.stream = 1, device + 1, stream
        pointer = c_void_p()
        _check(_library.pg_create(byref(self.desc), byref(pointer)), None)
        self.pointer = pointer.value

    def close(self):
        if self.pointer:
            _library.pg_destroy(self.pointer)
            self.pointer = None


class Solver:
    """Problems of one shape: what pg_desc says, and  method, 'FMG' or 'CG | PRECOND_AINV', the header's choices by name.

    shape        of u and f, (nx,), (ny, nx) or (nz, ny, nx); with batch=b arrays have an axis of b before them
    bc           see Faces above
    centring     'node' (default) or 'cell';  h, coord, weight, conductance: of each axis
    mask         an array of FLUID, SOLID or AIR (uint8), or of bool, where True is a solid
    beta_face, openness   dicts by axis of arrays with one more element along it; beta_cell, alpha_cell
    air_value, solid_flux   lists of ((k, j, i), face, value), as ((3, 1), 'y_high', 2.0); of air also with theta after the
                 value, which then holds at that part of the way from the unknown to the next one. Many are quicker as a
                 dict of arrays: 'cell', whose rows are (k, j, i), as of numpy.argwhere, 'face', 'value' and, of air,
                 'theta', an element a row, or one for all
    smoother, precond   'lines', 'ainv' ...: the header's names, shortened; method takes the long ones, too
    others       alpha, beta, velocity, omega, robust, nu_pre, nu_post, fmg_cycles, coarsest, inner_cycles: of pg_desc

    Tables and masks are copied (but not a mask on a GPU that is neither CuPy's nor PyTorch's); coefficients are kept by
    reference: tell set_cells of every change. After close, or the end of with, a solver can solve no more.
    """

    def __init__(self, shape, bc='dirichlet', *, dtype='float64', centring='node', h=None, coord=None, weight=None,
                 conductance=None, method=None, batch=0, backend='auto', mask=None, beta_face=None, openness=None,
                 beta_cell=None, alpha_cell=None, air_value=(), solid_flux=(), velocity=None, **fields):
        self._handles, self._places, self._last, self._used, self._keep = {}, {}, None, None, {}
        self._lock, self._changes, self._closed = threading.RLock(), 0, False
        sizes = shape if isinstance(shape, collections.abc.Iterable) and not isinstance(shape, str) else (shape,)
        self.shape, self.batch = tuple(_whole('a size in shape', n) for n in sizes), _whole('batch', batch)
        self.dim = len(self.shape)
        if not 1 <= self.dim <= 3:
            raise ValueError('shape is %r; it must have 1 to 3 axes, batch=... for more problems' % (shape,))
        if min(self.shape) < 1:
            raise ValueError('shape is %r; it must have one unknown or more along each axis' % (self.shape,))
        if self.batch < 0:
            raise ValueError('batch is %d; it must be a number of problems, or 0 for arrays of one' % self.batch)
        self._axes = ('x', 'y', 'z')[:self.dim]
        self.full_shape = ((self.batch,) if self.batch else ()) + self.shape
        *others, last = self.full_shape
        by_axis = isinstance(bc, dict) or isinstance(h, (dict, list, tuple)) or coord is not None
        if last in (3, 4) and len(others) > 1 and min(others[-2:]) >= 32 and not by_axis:
            raise ValueError('arrays would be %s: x, the last axis, has %d unknowns, as if they were channels. If they '
                             'are, put them first, numpy.moveaxis(f, -1, 0) with batch=%d; if not, give bc or h by axis, '
                             "bc={'x': ...}" % (self.full_shape, last, last))
        try:
            self.dtype = numpy.dtype(dtype).name
        except TypeError:
            self.dtype = str(dtype).rpartition('.')[2]    # of PyTorch
        if self.dtype not in ('float64', 'float32'):
            raise ValueError('dtype is %s; it must be float64 or float32, as astype makes them' % self.dtype)
        desc = self._desc = pg_desc()
        desc.dim, desc.batch = self.dim, self.batch
        desc.n[:] = self.shape[::-1] + (1,) * (3 - self.dim)
        desc.flags, desc.smoother, desc.precond = self._choices(method)
        desc.backend = _choice('backend', backend, {'auto': 0, 'cuda': 1, 'cpu': 2})
        for axis, value in self._by_axis('centring', centring):
            desc.centring[axis] = _choice('centring', value, {'node': 0, 'cell': 1})
        for name, values in (('h', h), ('velocity', velocity)):
            for axis, value in self._by_axis(name, values):
                getattr(desc, name)[axis] = _real('%s of %s' % (name, 'xyz'[axis]), value)
        self._set_bc(desc.face, bc)
        for name, values in (('coord', coord), ('weight', weight), ('conductance', conductance)):
            for axis, value in self._by_axis(name, values):
                if value is not None:
                    table = self._keep[name, axis] = self._table(name, axis, value)
                    getattr(desc, name)[axis] = table.ctypes.data
        self._set_media(mask, {'beta_face': beta_face, 'openness': openness, 'beta_cell': beta_cell,
                               'alpha_cell': alpha_cell})
        cells = desc.cells
        cells.air_value, cells.air_values = self._cell_values('air_value', air_value)
        cells.solid_flux, cells.solid_fluxes = self._cell_values('solid_flux', solid_flux)
        self._most = {'air_value': cells.air_values, 'solid_flux': cells.solid_fluxes}
        for name, value in fields.items():
            if name not in _FIELDS:
                raise ValueError('%s is no option of a Solver%s' % (name, '; Solver.solve takes it' * (name in _STOPS)))
            setattr(desc, name, _FIELDS[name](name, value))
        needed = c_size_t()
        trial = pg_desc.from_buffer_copy(desc)
        if any(device != _HOST for device in self._devices()):
            trial.memory, trial.backend = 1, 1
        _check(_library.pg_workspace_bytes(byref(trial), byref(needed)), None)
        self.workspace_bytes = needed.value

    # -- options --

    def axis_of(self, axis):
        """The library's number of an axis, 0 for x, given by name or as a place in the shape."""
        if axis in self._axes:
            return self._axes.index(axis)
        if isinstance(axis, (int, numpy.integer)) and -self.dim <= axis < self.dim:
            return self.dim - 1 - int(axis) % self.dim
        raise ValueError('axis is %r; it must be one of %s, or -%d to %d' %
                         (axis, ', '.join(self._axes), self.dim, self.dim - 1))

    def _by_axis(self, name, values):
        """Pairs of the library's axis and what it has."""
        if values is None:
            return []
        if isinstance(values, dict):
            return [(self.axis_of(axis), value) for axis, value in values.items()]
        if isinstance(values, str) or not hasattr(values, '__len__') or getattr(values, 'shape', None) == ():
            return [(axis, values) for axis in range(self.dim)]
        if len(values) != self.dim:
            raise ValueError('%s has %d values; there are %d axes' % (name, len(values), self.dim))
        return [(self.dim - 1 - place, value) for place, value in enumerate(values)]

    def _choices(self, method):
        """What pg_desc has of a method: flags, smoother, preconditioner."""
        flags, others = FLAGS['F64' if self.dtype == 'float64' else 'F32'], [0, 0]
        if not isinstance(method, (str, type(None))):
            raise ValueError("method is %r; it must be names of the header's choices, as 'CG | PRECOND_AINV'" % (method,))
        for name in filter(None, (method or '').upper().replace('PG_', '').replace('|', ' ').split()):
            for q, group in enumerate((SMOOTHERS, PRECONDS)):
                others[q] |= group.get(name, 0)
            if name not in SMOOTHERS and name not in PRECONDS:
                flags |= _choice('method', name, {**FLAGS, **SMOOTHERS, **PRECONDS})
        return (flags & ~FLAGS['F64'] if flags & FLAGS['MIXED'] else flags, *others)

    def _intervals(self, axis):
        """How many intervals an axis has from one side of the box to the other."""
        ends = [self._desc.face[2 * axis + end].kind for end in (0, 1)]
        if self._desc.centring[axis] or KINDS['periodic'] in ends:
            return self._desc.n[axis]
        return self._desc.n[axis] - 1 + sum(kind in _OUTSIDE for kind in ends)

    def _table(self, name, axis, values):
        """A copy of what an axis has, of the right length."""
        n, kinds = self._desc.n[axis], list(KINDS)
        try:
            table = numpy.array(values, 'float64', order='C')
        except (TypeError, ValueError):
            raise ValueError('%s of %s is %r; it must be a list of numbers' % (name, 'xyz'[axis], values)) from None
        needed = {'coord': self._intervals(axis) + 1, 'weight': n, 'conductance': n + 1}[name]
        if table.shape != (needed,):
            low, high = (kinds[self._desc.face[2 * axis + end].kind] for end in (0, 1))
            raise ValueError('%s of %s has the shape %s; %d %s between ends that are %s and %s need %d values' %
                             (name, 'xyz'[axis], table.shape, n, ('nodes', 'cells')[self._desc.centring[axis]], low,
                              high, needed))
        return table

    def _check_field(self, name, array, shape, dtype):
        """An array that the library reads at each solve: exactly so, without gaps. Returns its address and device."""
        address, own, _ = _described(name, array)
        if own.shape != shape or own.dtype != dtype:
            raise ValueError('%s is %s of %s; it must be %s of %s' % (name, own.shape, own.dtype, shape, dtype))
        if own.strides is None or any(s != p and n > 1 for s, p, n in zip(own.strides, _packed(shape), shape)):
            raise ValueError('%s has gaps; make a contiguous copy' % name)
        return address, own.device

    def _devices(self):
        """Where the arrays are that solves read beside u and f: -1 for host memory."""
        return {kept[1] for kept in self._keep.values() if isinstance(kept, tuple)}

    def _set_bc(self, faces, bc):
        given = bc if isinstance(bc, dict) else dict.fromkeys(self._axes, bc)
        of_axis = {axis: (axis + '_low', axis + '_high') for axis in self._axes}
        names = [name for pair in of_axis.values() for name in pair]
        for key, what in given.items():
            if key not in of_axis and key not in names:
                raise ValueError('bc names %r; faces are %s, or x for both' % (key, ', '.join(names)))
            for name in of_axis.get(key, (key,)):
                self._set_face(faces[names.index(name)], name, what)

    def _set_face(self, face, name, what):
        kind, *rest = what if isinstance(what, (tuple, list)) and len(what) else (what,)
        if not isinstance(kind, str) or kind in KINDS and len(rest) not in (
                (2, 3) if kind == 'robin' else (0,) if kind in ('periodic', 'open', 'spectral') else (0, 1)):
            raise ValueError("bc of %s is %r; it must be a kind, (kind, g), or ('robin', a, b, g)" % (name, what))
        face.kind = _choice('bc of ' + name, kind, KINDS)
        if kind == 'robin':
            face.a, face.b = (_real('a factor of bc of ' + name, factor) for factor in rest[:2])
            rest = rest[2:]
        g = rest[0] if rest else 0.0
        self._keep.pop(('bc', name), None)
        face.value, face.array = 0.0, None
        place = self.dim - 1 - 'xyz'.index(name[0])
        shape = self.shape[:place] + self.shape[place + 1:]
        shape = self.full_shape[:1] + shape if self.batch else shape
        if numpy.isscalar(g) or g is None or getattr(g, 'shape', None) == () != shape:
            face.value = _real('g of ' + name, g)
            return
        face.array, device = self._check_field('g of face ' + name, g, shape, self.dtype)
        self._keep['bc', name] = (g, device)

    def _set_media(self, mask, fields):
        desc = self._desc.cells
        if mask is not None:
            own = _described('mask', mask)[1]
            if own.shape != self.shape or own.dtype not in ('uint8', 'bool', 'int8'):
                raise ValueError('mask is %s of %s; it must be %s of uint8 or bool' %
                                 (own.shape, own.dtype, self.shape))
            mask = _copied(mask)
            desc.mask, device = self._check_field('mask', mask, self.shape, own.dtype)
            self._keep['mask', 0] = (mask, device)
        for name, given in fields.items():
            if given is None:
                continue
            if name in ('beta_cell', 'alpha_cell'):
                address, device = self._check_field(name, given, self.shape, self.dtype)
                setattr(desc, name, address)
                self._keep[name, 0] = (given, device)
                continue
            for axis, array in self._by_axis(name, given):
                shape = tuple(n + (place == self.dim - 1 - axis) for place, n in enumerate(self.shape))
                address, device = self._check_field('%s of %s' % (name, 'xyz'[axis]), array, shape, self.dtype)
                getattr(desc, name)[axis] = address
                self._keep[name, axis] = (array, device)

    def _cell_values(self, name, values):
        """The table of a list, or of a dict of arrays, and how many entries it has."""
        if not isinstance(values, (collections.abc.Sequence, dict)):
            raise ValueError('%s is %r; it must be a list of (cell, face, value), or a dict of arrays cell, face, value' %
                             (name, values))
        faces = {'%s_%s' % (a, side): 2 * axis + end for axis, a in enumerate(self._axes)
                 for end, side in enumerate(('low', 'high'))}
        table = (self._table_of_arrays if isinstance(values, dict) else self._table_of_entries)(name, values, faces)
        self._keep[name, 'list'] = table
        return (table, len(table)) if len(table) else (None, 0)

    def _table_of_entries(self, name, values, faces):
        table = (pg_cell_value * len(values))()
        for q, (entry, given) in enumerate(zip(table, values)):
            own = '%s[%d]' % (name, q)
            try:
                (*cell,), face, value, theta = given if len(given) == 4 else (*given, 0)
            except (TypeError, ValueError):
                raise ValueError("%s is %r; it must be (cell, face, value), as ((3, 1), 'y_high', 2.0), or with theta" %
                                 (own, given)) from None
            cell = tuple(_whole('a place in the cell of ' + own, place) for place in cell)
            if len(cell) != self.dim or not all(0 <= place < n for place, n in zip(cell, self.shape)):
                raise ValueError('%s has the cell %s, outside the shape %s' % (own, cell, self.shape))
            entry.cell[:] = cell[::-1] + (0,) * (3 - self.dim)
            entry.face = _choice('the face of ' + own, face, faces)
            entry.value, entry.theta = _real('the value of ' + own, value), _real('the theta of ' + own, theta)
        return table

    def _table_of_arrays(self, name, values, faces):
        if not {'cell', 'face', 'value'} <= set(values) <= {'cell', 'face', 'value', 'theta'}:
            raise ValueError('%s has %s; it must have cell, face, value, of air also theta' % (name, ', '.join(values)))
        arrays = {}
        for key, array in values.items():
            try:
                arrays[key] = numpy.asarray(array, 'float64' if key in ('value', 'theta') else None)
            except (TypeError, ValueError):
                raise ValueError('%s of %s is %r; it must be an array in host memory, of numbers or names' %
                                 (key, name, array)) from None
        cell, given = arrays.pop('cell'), arrays['face']
        if cell.ndim != 2 or cell.shape[1] != self.dim or cell.dtype.kind not in 'iu':
            raise ValueError('cell of %s is %s of %s; it must be (entries, %d) of whole numbers' %
                             (name, cell.shape, cell.dtype, self.dim))
        outside = ((cell < 0) | (cell >= self.shape)).any(1)
        if outside.any():
            q = outside.argmax()
            raise ValueError('%s[%d] has the cell %s, outside the shape %s' % (name, q, tuple(cell[q].tolist()), self.shape))
        number = arrays['face'] = numpy.full(given.shape, -1, 'int32')
        for face in faces:
            number[given == face] = faces[face]
        if (number < 0).any():
            q = (number < 0).argmax()
            _choice('the face of %s[%d]' % (name, q), given.ravel().tolist()[q], faces)
        table = (pg_cell_value * len(cell))()
        rows = numpy.frombuffer(table, pg_cell_value) if len(cell) else numpy.empty(0, pg_cell_value)
        rows['cell'][:, :self.dim] = cell[:, ::-1]
        for key, column in arrays.items():
            if column.shape not in ((), (len(cell),)):
                raise ValueError('%s of %s has the shape %s; cell has %d rows' % (key, name, column.shape, len(cell)))
            rows[key] = column
        return table

    # -- handles --

    def _fits(self, strides):
        """The library's strides of an array: y, z, from problem to problem; None where it cannot take them."""
        if strides is None:
            return None
        shape, dim = self.full_shape, self.dim
        packed = _packed(shape)
        own = [p if n == 1 else s for s, p, n in zip(strides, packed, shape)]
        if own[-1] != 1 or any(s < 1 for s in own):
            return None
        within = own[::-1][1:dim] + [0] * (3 - dim)
        return (within[0], within[1], own[0] if self.batch else 0)

    def _place(self, name, layout, writable):
        """Checks a layout: the device and the library's strides; None where it takes a copy."""
        if layout.shape != self.full_shape:
            raise ValueError('%s has the shape %s; the solver was made for %s' % (name, layout.shape, self.full_shape))
        if layout.dtype != self.dtype:
            raise ValueError('%s is %s; the solver was made for %s' % (name, layout.dtype, self.dtype))
        if writable and not layout.writable:
            raise ValueError('%s cannot be written: it is read-only' % name)
        strides = self._fits(layout.strides)
        if strides is None and writable:
            raise ValueError('%s has the strides %s; the last axis must have no gaps' % (name, layout.strides))
        return strides and (layout.device, strides)

    def _array(self, name, x, writable=False):
        """Checks an array: its address, place (device and the library's strides), stream, and itself or a copy."""
        address, layout, stream = _describe(x)
        place = self._places.get((layout, writable))
        if place is None:
            place = self._place(name, layout, writable)
            if place is None:
                return self._array(name, _contiguous(x))
            self._places[layout, writable] = place
        return address, place, stream, x

    def _handle_for(self, place_u, place_f, stream):
        """The handle of two places, on the arrays' stream."""
        handle = self._handles.get((place_u, place_f))
        if handle is None:
            if self._closed:
                raise ValueError('the solver is closed; make a new one')
            (device, strides_u), (device_f, strides_f) = place_u, place_f
            where, where_f = ('in host memory' if d == _HOST else 'on CUDA device %d' % d for d in (device, device_f))
            if device != device_f:
                raise ValueError('the arrays are not in one place: one is %s, the other %s' % (where, where_f))
            if self._devices() - {device}:
                raise ValueError('u and f are %s, but face arrays, masks or coefficients are not; move one of them' %
                                 where)
            self._drop_handles()
            handle = self._handles[place_u, place_f] = _Handle(self._desc, device, strides_u, strides_f, stream)
        elif handle.stream != stream:
            _check(_library.pg_set_stream(handle.pointer, stream), handle.pointer)
            handle.stream = stream
        if handle is not self._used:
            self._used = self._handles[place_u, place_f] = self._handles.pop((place_u, place_f))    # now the last one
        return handle

    def _drop_handles(self):
        """Makes room for one more: those used longest ago go, but for the one that the report is of."""
        self._places.clear()
        old = [places for places, handle in self._handles.items() if handle is not self._last]
        for places in old[:max(0, len(self._handles) + 1 - _HANDLES)]:
            self._handles.pop(places).close()

    # -- calls --

    @_locked
    def solve(self, f, u=None, *, monitor=None, **stop):
        """Solves A u = f; returns u, a new array if none is given.

        stop     rtol (None: no tolerance), atol, max_iter, min_iter, check, relative_to_first, norm ('l2', 'l2_plain',
                 'max', 'l1') and guess ('zero', 'u') of pg_stop. A u that is given is the guess of methods
                 that take one. What a solve that fails does not write (report.message) is as before in a u that is
                 given, and NaN in a new one
        monitor  called with a Report at every check; it may return CANCEL
        """
        address_f, place_f, stream, f = self._array('f', f)
        new = u is None
        if new:
            if stop.get('guess', 'zero') not in ('zero', 'default'):
                raise ValueError('guess is %r, but there is no u; give u=..., or leave guess out' % (stop['guess'],))
            u, stop['guess'] = _new(self.full_shape, f, self.dtype), 'zero'
        address_u, place_u, _, _ = self._array('u', u, True)
        try:
            options = _stop(**stop) if stop else None
        except TypeError:    # what has no hash, as arrays
            options = _stop.__wrapped__(**stop)
        handle = self._last = self._handle_for(place_u, place_f, stream)
        if monitor is not None:
            self._solve_watched(handle, address_u, address_f, options, monitor)
        else:
            status = _pg_solve(handle.pointer, address_u, address_f, options and byref(options))
            if status:
                _check(status, handle.pointer)
        return self._result(u, f, handle) if new else u

    def _result(self, new, like, handle):
        """A new array in the framework of the input; those that share no stream with ours get it when it is done."""
        if type(new) is type(like):
            return new
        if handle.desc.memory:
            _check(_library.pg_get_report(handle.pointer, byref(pg_report())), handle.pointer)
        return _returned(new, like)

    def _solve_watched(self, handle, u, f, stop, monitor):
        raised = []

        def watch(_, report):
            try:
                return 1 if monitor(_report_of(report.contents)) is CANCEL else 0
            except BaseException as error:    # it must not pass through C
                raised.append(error)
                return 1
        own = pg_stop.from_buffer_copy(stop) if stop else pg_stop()
        own.monitor = pg_monitor(watch)
        status = _pg_solve(handle.pointer, u, f, byref(own))
        if raised:
            raise raised[0]
        _check(status, handle.pointer)

    @property
    @_locked
    def report(self):
        """Waits for the last solve and reports on it."""
        if self._last is None:
            raise RuntimeError('the solver is closed' if self._closed else 'there was no solve to report on')
        report = pg_report()
        _check(_library.pg_get_report(self._last.pointer, byref(report)), self._last.pointer)
        return _report_of(report)

    @_locked
    def _solve_homogeneous(self, f, **stop):
        """The same with boundary values and values of cells 0, which are put back."""
        u = _new(self.full_shape, f, self.dtype)
        _, place_f, stream, f = self._array('f', f)
        pointer = self._handle_for(self._array('u', u, True)[1], place_f, stream).pointer
        desc, lists = self._desc, self._lists()
        none = (pg_face * 6).from_buffer_copy(desc.face)
        for face in none:
            face.value, face.array = 0.0, None
        try:
            _check(_library.pg_set_faces(pointer, none), pointer)
            if lists:
                zeros = pg_cells(air_values=NONE, solid_fluxes=NONE)
                if desc.cells.air_values:    # surfaces stay where they are
                    table = self._keep['air_value', 'list']
                    table = type(table).from_buffer_copy(table)
                    numpy.frombuffer(table, pg_cell_value)['value'] = 0
                    zeros.air_value, zeros.air_values = table, len(table)
                _check(_library.pg_set_cells(pointer, byref(zeros)), pointer)
            return self.solve(f, u, **dict(stop, guess='zero'))
        finally:
            _check(_library.pg_set_faces(pointer, desc.face), pointer)
            if lists:
                _check(_library.pg_set_cells(pointer, byref(lists)), pointer)

    def _lists(self):
        """The values of cells as a pg_cells; None where there are none."""
        own = self._desc.cells
        if not own.air_values and not own.solid_fluxes:
            return None
        return pg_cells(air_value=own.air_value, air_values=own.air_values or NONE, solid_flux=own.solid_flux,
                        solid_fluxes=own.solid_fluxes or NONE)

    def _piece(self, call, u, f, *more):
        address_u, place_u, _, u = self._array('u', u, call in ('smooth', 'cycle'))
        address_f, place_f, stream, f = self._array('f', f, call not in ('smooth', 'cycle'))
        handle = self._handle_for(place_u, place_f, stream)
        _check(getattr(_library, 'pg_' + call)(handle.pointer, address_u, address_f, *more), handle.pointer)
        return handle

    @_locked
    def apply(self, u, out=None):
        """A u, boundary values taken as 0."""
        if out is not None:
            self._piece('apply', u, out)
            return out
        out = _new(self.full_shape, u, self.dtype)
        return self._result(out, u, self._piece('apply', u, out))

    @_locked
    def residual(self, u, f, out=None):
        """f + boundary terms - A u."""
        new = out is None
        out = _new(self.full_shape, u, self.dtype) if new else out
        address_u, place_u, _, u = self._array('u', u)
        address_f, place_f, stream, f = self._array('f', f)
        if address_u == address_f:
            f = _copied(f)
            address_f, place_f, stream, f = self._array('f', f)
        address_r, place_r, _, _ = self._array('out', out, True)
        if place_r != place_f:
            address_f, place_f, stream, f = self._array('f', _contiguous(f))
            if place_r != place_f:
                raise ValueError('out has the place and strides %s, f %s; make them equal' % (place_r, place_f))
        handle = self._handle_for(place_u, place_f, stream)
        _check(_library.pg_residual(handle.pointer, address_u, address_f, address_r), handle.pointer)
        return self._result(out, u, handle) if new else out

    @_locked
    def smooth(self, u, f, sweeps=1):
        self._piece('smooth', u, f, _whole('sweeps', sweeps))

    @_locked
    def cycle(self, u, f, cycles=1):
        self._piece('cycle', u, f, _whole('cycles', cycles))

    @_locked
    def gradient(self, u, axis, where='faces', out=None):
        """du/dx, du/dy or du/dz with the boundary data: at 'faces', one value more along the axis, or at 'unknowns'."""
        number = self.axis_of(axis)
        at = _choice('where', where, {'faces': 0, 'unknowns': 1})
        address_u, place_u, stream, u = self._array('u', u)
        along = len(self.full_shape) - 1 - number
        shape = tuple(n + (at == 0 and q == along) for q, n in enumerate(self.full_shape))
        new = out is None
        out = _new(shape, u, self.dtype) if new else out
        address, own, _ = _describe(out)
        if own.shape != shape or own.dtype != self.dtype or not own.writable:
            raise ValueError('out is %s of %s; it must be %s of %s, and writable' %
                             (own.shape, own.dtype, shape, self.dtype))
        strides = self._fits(_packed(self.full_shape) if at == 0 else own.strides)
        if strides is None or (at == 0 and own.strides != _packed(shape)):
            raise ValueError('out has the strides %s; it must have no gaps' % (own.strides,))
        handle = self._handle_for(place_u, (own.device, strides), stream)
        _check(_library.pg_gradient(handle.pointer, address_u, number, address, at), handle.pointer)
        return self._result(out, u, handle) if new else out

    def _number(self, call, x, *more):
        address, place, stream, x = self._array('x', x)
        handle = self._handle_for(place, place, stream)
        result = c_double()
        _check(getattr(_library, 'pg_' + call)(handle.pointer, address, *more, byref(result)), handle.pointer)
        return result.value

    @_locked
    def norm(self, x, kind='l2'):
        return self._number('norm', x, _choice('kind', kind, NORMS))

    @_locked
    def sum(self, x):
        """The integral, sum w x."""
        return self._number('dot', x, None)

    @_locked
    def dot(self, x, y):
        """The inner product sum w x y, in which A is self-adjoint."""
        _, place_x, _, x = self._array('x', x)
        address_y, place_y, _, y = self._array('y', y)
        if place_x != place_y:
            (_, place_x, _, x), (address_y, place_y, _, y) = (
                self._array(name, _contiguous(z)) for name, z in (('x', x), ('y', y)))
        if place_x != place_y:
            raise ValueError('x and y are not on one device; move one of them')
        return self._number('dot', x, address_y)

    @_locked
    def parts(self, x):
        """The connected parts of the fluid: labels (-1 outside of it), and by part sum w x and sum w, in NumPy arrays.

        sums / volumes are the means of x; of a batch sums has a row for each problem.
        """
        address, place, stream, x = self._array('x', x)
        handle = self._handle_for(place, place, stream)
        count = c_int(0)
        _check(_library.pg_get_parts(handle.pointer, None, None, byref(count), None, None), handle.pointer)
        labels = _new_labels(self.shape, x)
        count.value = max(1, count.value)
        sums, volumes = numpy.zeros((max(1, self.batch), count.value)), numpy.zeros(count.value)
        _check(_library.pg_get_parts(handle.pointer, address, _describe(labels)[0], byref(count),
                                     *(x.ctypes.data_as(POINTER(c_double)) for x in (sums, volumes))), handle.pointer)
        sums = sums[:, :count.value]
        return labels, sums if self.batch else sums[0], volumes[:count.value]

    @contextlib.contextmanager
    def _all_or_nothing(self):
        """What is refused leaves the problem, and the arrays that it refers to, as they were."""
        if self._closed:
            raise ValueError('the solver is closed; make a new one')
        keep, desc = dict(self._keep), pg_desc.from_buffer_copy(self._desc)
        try:
            yield
        except BaseException:
            self._keep, self._desc = keep, desc
            raise

    def _each_handle(self):
        """The handles, after a look at where new arrays are."""
        for (device, _), _ in self._handles:
            if self._devices() - {device}:
                raise ValueError('u and f were %s, but the new array is not; move it' %
                                 ('in host memory' if device == _HOST else 'on CUDA device %d' % device))
        return [handle.pointer for handle in self._handles.values()]

    @_locked
    def set_faces(self, bc):
        """New boundary values, of the same kinds; what is not named keeps its own."""
        with self._all_or_nothing():
            before = pg_desc.from_buffer_copy(self._desc).face
            self._set_bc(self._desc.face, bc)
            for q, (old, new) in enumerate(zip(before, self._desc.face)):
                if (old.kind, old.a, old.b) != (new.kind, new.a, new.b):
                    kinds = list(KINDS)
                    raise ValueError('the kind of face %s_%s would change from %s to %s, or its a and b; make a new '
                                     'Solver' % ('xyz'[q // 2], ('low', 'high')[q % 2], kinds[old.kind],
                                                 kinds[new.kind]))
            for pointer in self._each_handle():
                _check(_library.pg_set_faces(pointer, self._desc.face), pointer)

    @_locked
    def set_alpha(self, alpha):
        with self._all_or_nothing():
            self._desc.alpha = _real('alpha', alpha)
            for pointer in self._each_handle():
                _check(_library.pg_set_alpha(pointer, self._desc.alpha), pointer)
            self._changes += 1

    @_locked
    def set_cells(self, mask=None, *, air_value=None, solid_flux=None, **fields):
        """What has changed of mask, beta_face, beta_cell, openness, alpha_cell, air_value, solid_flux.

        Without arguments: the coefficients have changed in place. A mask and lists are copied. Lists have at most as many
        entries as those that the solver was made with, and a theta only if one of those had one, which may be 1.
        """
        with self._all_or_nothing():
            if mask is not None and not self._desc.cells.mask:
                raise ValueError('the solver was made without a mask; make it with one, of zeros say')
            made_with = {name for name, _ in self._keep}
            for name in fields:
                if name not in _COEFFICIENTS:
                    raise ValueError('%s is none of the coefficients, which are %s' % (name, ', '.join(_COEFFICIENTS)))
                if name not in made_with:
                    raise ValueError('the solver was made without %s; make it with one' % name)
            lists = {name: values for name, values in (('air_value', air_value), ('solid_flux', solid_flux))
                     if values is not None}
            self._set_media(mask, fields)
            own = self._desc.cells
            for name, number in (('air_value', 'air_values'), ('solid_flux', 'solid_fluxes')):
                if name in lists:
                    table, count = self._cell_values(name, lists[name])
                    if count > self._most[name]:
                        raise ValueError('%s has %d entries; the solver was made for %d at most' %
                                         (name, count, self._most[name]))
                    setattr(own, name, table)
                    setattr(own, number, count)
            given = (self._lists() or pg_cells(air_values=NONE, solid_fluxes=NONE)) if lists else pg_cells()
            if mask is not None:
                given.mask = own.mask
            if fields or not (lists or mask is not None):
                given.beta_face, given.beta_cell = own.beta_face, own.beta_cell
                given.openness, given.alpha_cell = own.openness, own.alpha_cell
            for pointer in self._each_handle():
                _check(_library.pg_set_cells(pointer, byref(given)), pointer)
            self._changes += 1

    def weights(self, axis):
        """The control lengths of an axis times its metric: w of norms and inner products is their product."""
        number = self.axis_of(axis)
        desc = self._desc
        low, high = (desc.face[2 * number + end].kind for end in (0, 1))
        cell, periodic = desc.centring[number] == 1, low == KINDS['periodic']
        intervals = self._intervals(number)
        edges = self._keep.get(('coord', number))
        if edges is None:
            length_1 = 1 / (desc.n[number] if {KINDS['open'], KINDS['spectral']} & {low, high} else max(intervals, 1))
            edges = numpy.arange(intervals + 1) * (desc.h[number] or length_1)
        gaps = numpy.diff(edges)
        if intervals == 0:
            widths = numpy.array([desc.h[number] or 1.0])
        elif cell:
            widths = gaps
        elif periodic:
            widths = (gaps + numpy.roll(gaps, 1)) / 2
        else:
            ends = [[] if kind in _OUTSIDE else [0.0] for kind in (low, high)]
            gaps = numpy.concatenate((ends[0], gaps, ends[1]))
            widths = (gaps[1:] + gaps[:-1]) / 2
        return widths * self._keep.get(('weight', number), 1.0)

    def close(self):
        """Gives the memory back; the solver is of no use then."""
        with self._lock:
            for handle in self._handles.values():
                handle.close()
            self._handles, self._last, self._used, self._closed = {}, None, None, True

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if getattr(self, '_handles', None):
            self.close()


def _problems(shape):
    if not shape or not shape[0]:
        raise ValueError('f has the shape %s, which is no batch of problems' % (shape,))
    return shape[0]


def solve(f, bc='dirichlet', *, u=None, batch=False, monitor=None, **options):
    """Solves once: u, report = solve(f, bc=..., alpha=..., rtol=...), with the options of Solver and of Solver.solve.

    batch: the first axis of f is one of problems.
    """
    stop = {name: options.pop(name) for name in _STOPS if name in options}
    layout = _describe(f)[1]
    shape = layout.shape
    if batch:
        options['batch'], shape = _problems(shape), shape[1:]
    with Solver(shape, bc, dtype=options.pop('dtype', layout.dtype), **options) as solver:
        u = solver.solve(f, u, monitor=monitor, **stop)
        return u, solver.report


# ---- PyTorch: gradients ----


def _torch_function():
    """The autograd function, made when it is first asked for, so that PyTorch need not be there."""
    import torch

    class Solve(torch.autograd.Function):
        @staticmethod
        def forward(f, solver, homogeneous, check, stop):
            with solver._lock:
                u = (solver._solve_homogeneous if homogeneous else solver.solve)(f.detach(), **stop)
                report = solver.report if check else None
            if report and report.outcome not in ('converged', 'completed'):
                warnings.warn('torch_solve%s: %s' % (', a gradient' if homogeneous else '', report.message),
                              RuntimeWarning, stacklevel=2)
            return u

        @staticmethod
        def setup_context(ctx, inputs, output):
            _, ctx.solver, _, ctx.check, ctx.stop = inputs
            ctx.changes = ctx.solver._changes

        @staticmethod
        def backward(ctx, grad):
            """A is self-adjoint in the inner product of the weights w: its inverse transposed is w A^-1 (1/w)."""
            solver = ctx.solver
            if any(solver._desc.velocity):
                raise ValueError(_NO_GRADIENT)
            if solver._changes != ctx.changes:
                raise ValueError('alpha, the mask or coefficients were set after torch_solve and before its gradient; '
                                 'take a Solver for each')
            weight = torch.ones((), dtype=grad.dtype, device=grad.device)
            for place in range(solver.dim):
                w = torch.as_tensor(solver.weights(place), dtype=grad.dtype, device=grad.device)
                weight = weight * w.reshape((-1,) + (1,) * (solver.dim - 1 - place))
            return weight * Solve.apply(grad / weight, solver, True, ctx.check, ctx.stop), None, None, None, None

        @staticmethod
        def vmap(info, in_dims, f, *more):
            return torch.stack([Solve.apply(one, *more) for one in f.unbind(in_dims[0])]), 0

    return Solve


_functions = {}
_NO_GRADIENT = 'with a velocity A is not self-adjoint, and there is no gradient; leave it out, or detach f'


def torch_solve(f, solver=None, bc=None, *, batch=False, stop=None, check=True, **options):
    """u of A u = f as the autograd of PyTorch (2.0 or later) knows it: gradients by f, of any order, are solves too.

    solver  a Solver, which must not be closed, nor get another alpha, mask or coefficients, before the gradients were
            taken; else one is made of bc and the other options, as solve does
    stop    a dict with options of Solver.solve
    check   warns (RuntimeWarning) where a solve did not converge, for which it waits; False: it does not look

    Face arrays, masks and coefficients get no gradient. torch.func.grad takes it, and so does torch.func.vmap, which
    solves one problem after the other.
    """
    import torch
    if not isinstance(f, torch.Tensor):
        raise ValueError('f is of type %s; torch_solve takes a tensor of PyTorch, solve other arrays' %
                         type(f).__name__)
    if solver is None:
        shape = tuple(f.shape)
        if batch:
            options['batch'], shape = _problems(shape), shape[1:]
        dtype = options.pop('dtype', str(f.dtype).rpartition('.')[2])
        solver = Solver(shape, 'dirichlet' if bc is None else bc, dtype=dtype, **options)
    elif bc is not None or batch or options:
        names = ['bc'] * (bc is not None) + ['batch'] * bool(batch) + list(options)
        raise ValueError('%s: these are options of a new Solver; leave them out beside a solver' % ', '.join(names))
    if f.requires_grad and any(solver._desc.velocity):
        raise ValueError(_NO_GRADIENT)
    if 'torch' not in _functions:
        _functions['torch'] = _torch_function()
    return _functions['torch'].apply(f, solver, False, check, dict(stop or {}))
