import { expect, test } from '@jest/globals';

import { type Cell, svgOf } from './svg.ts';

function cells(text: string, style: Partial<Cell> = {}): readonly Cell[] {
  return Array.from(text, (character) => ({
    text: character,
    isBold: false,
    isDim: false,
    isInverse: false,
    ...style,
  }));
}

const SIZE = { columns: 20, rows: 1 };

test('neighbours that look the same are one text, and words that are far apart are placed each for itself', () => {
  const svg = svgOf([[...cells('a b', { colour: 1 }), ...cells('   c  ')]], SIZE);

  expect(svg.match(/<text .*<\/text>/g)).toEqual([
    '<text x="14" y="28" textLength="25.2" fill="#ff7b72">a b</text>',
    '<text x="64.4" y="28" textLength="8.4">c</text>',
  ]);
});

test('what is bold, dim or inverse looks so', () => {
  const svg = svgOf(
    [[...cells('b', { isBold: true }), ...cells('d', { isDim: true }), ...cells('i ', { isInverse: true })]],
    SIZE,
  );

  expect(svg).toContain(' font-weight="bold">b<');
  expect(svg).toContain(' opacity="0.65">d<');
  expect(svg).toContain('<rect x="30.8" y="14" width="16.8" height="18" fill="#d0d7de"/>');
  expect(svg).toContain(' fill="#0d1117">i<');
});

test('texts cannot break the picture', () => {
  expect(svgOf([cells('<a&b>')], SIZE)).toContain('>&lt;a&amp;b&gt;</text>');
});
