import { expect, test } from '@jest/globals';

import { describeFigure, figure } from './figures.ts';

test.each([
  { value: 1234.6, unit: 'MB', says: 'memory: 1235 MB' },
  { value: 12.34, unit: '% of a core', says: 'memory: 12.3 % of a core' },
  { value: 0.567, unit: 's', says: 'memory: 0.57 s' },
  { value: -0.5, unit: 'kB', says: 'memory: -0.50 kB' },
  { value: 3, unit: '', says: 'memory: 3' },
])('$value is written with as many digits as mean something: $says', ({ value, unit, says }) => {
  expect(describeFigure(figure('memory', value, unit))).toBe(says);
});
