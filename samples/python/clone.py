"""Seamless cloning (P. Perez, M. Gangnet, A. Blake 2003): a cat into a cup of coffee, photographs of scikit-image.

    python3 clone.py [-o clone.png]

In a rectangle the colours u have the Laplacian of the source, and on its border the values of the target: the three
channels are a batch, and the border values arrays over the faces. It checks that the seam is gone.
"""
import argparse

import numpy as np
from skimage import data

import poisson_gpu


def blended(target, source, row, column):
    """The target with the source, less its outermost pixels, from that place on."""
    n, m = source.shape[0] - 2, source.shape[1] - 2
    s = np.moveaxis(source.astype('float64'), 2, 0)
    t = np.moveaxis(target.astype('float64'), 2, 0)[:, row - 1:row + n + 1, column - 1:column + m + 1]
    f = 4 * s[:, 1:-1, 1:-1] - s[:, :-2, 1:-1] - s[:, 2:, 1:-1] - s[:, 1:-1, :-2] - s[:, 1:-1, 2:]
    sides = {'x_low': t[:, 1:-1, 0], 'x_high': t[:, 1:-1, -1], 'y_low': t[:, 0, 1:-1], 'y_high': t[:, -1, 1:-1]}
    bc = {name: ('dirichlet', np.ascontiguousarray(side)) for name, side in sides.items()}
    u, report = poisson_gpu.solve(f, bc=bc, h=1, batch=True)
    print(report.message, '(%s)' % report.method)
    result = target.copy()
    result[row:row + n, column:column + m] = np.moveaxis(u.clip(0, 255), 0, 2).round()
    return result


def seam(picture, row, column, n, m):
    """The mean step across the border of the rectangle, over that between pixels of the two rows outside of it."""
    p = picture.astype('float64')
    inside = p[row, column:column + m], p[row + n - 1, column:column + m]
    beside = p[row - 1, column:column + m], p[row + n, column:column + m]
    beyond = p[row - 2, column:column + m], p[row + n + 1, column:column + m]
    return (sum(np.abs(a - b).mean() for a, b in zip(inside, beside)) /
            sum(np.abs(a - b).mean() for a, b in zip(beside, beyond)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('-o', default='clone.png')
    name = parser.parse_args().o
    target, cat = data.coffee(), data.chelsea()[:300, :450]
    source = cat.reshape(150, 2, 225, 2, 3).mean((1, 3)).astype('uint8')[4:134, 50:200]
    row, column, n, m = 44, 220, source.shape[0] - 2, source.shape[1] - 2
    pasted = target.copy()
    pasted[row:row + n, column:column + m] = source[1:-1, 1:-1]
    result = blended(target, source, row, column)
    before, after = (seam(p, row, column, n, m) for p in (pasted, result))
    print('steps across the seam over those beside it: pasted %.1f, blended %.1f' % (before, after))
    from PIL import Image, ImageDraw
    page = Image.new('RGB', (2 * target.shape[1], target.shape[0] + 20), 'white')
    for x, title, picture in (0, 'pasted', pasted), (target.shape[1], 'blended', result):
        page.paste(Image.fromarray(picture), (x, 20))
        ImageDraw.Draw(page).text((x + 8, 4), title, 'black')
    page.save(name)
    print(name)
    if not (after < 2.5 and after < before / 3):
        return 'wrong: the blended seam must be below 2.5, and below a third of the pasted one'


if __name__ == '__main__':
    raise SystemExit(main())
