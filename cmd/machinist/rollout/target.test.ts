import { expect, test } from '@jest/globals';

import { ApiError } from '../../../pkg/kube/client/errors.ts';
import { failureText, CommandError } from '../command-error.ts';
import { deploymentNamesOf, withNegations } from './target.ts';

test.each([
  { words: ['pool'] },
  { words: ['mcd/pool'] },
  { words: ['machinedeployment/pool'] },
  { words: ['machinedeployments', 'pool'] },
  { words: ['MachineDeployment.machine.sapcloud.io/pool'] },
])('$words names the machine deployment', ({ words }) => {
  expect(deploymentNamesOf(words, undefined)).toEqual(['pool']);
});

test('a selector stands for names', () => {
  expect(deploymentNamesOf([], 'a=b')).toBeUndefined();
  expect(deploymentNamesOf(['mcd'], 'a=b')).toBeUndefined();
});

test.each([
  { words: ['deployment/pool'], selector: undefined, says: 'unknown type "deployment"' },
  { words: ['mcd/'], selector: undefined, says: 'expected TYPE/NAME instead of "mcd/"' },
  { words: [], selector: undefined, says: 'expected a MachineDeployment, as NAME or mcd/NAME' },
  { words: ['pool'], selector: 'a=b', says: 'names cannot be used with --selector' },
])('$words with selector $selector name none', ({ words, selector, says }) => {
  expect(() => deploymentNamesOf(words, selector)).toThrow(says);
});

test.each([
  { argv: ['status', '--watch=false', 'pool'], want: ['status', '--no-watch', 'pool'] },
  { argv: ['status', '-w=true', 'pool'], want: ['status', '--watch', 'pool'] },
  { argv: ['status', '-w', 'pool'], want: ['status', '-w', 'pool'] },
])('$argv is read as $want', ({ argv, want }) => {
  expect(withNegations(argv)).toEqual(want);
});

test.each([
  { err: new CommandError('no'), text: 'error: no' },
  { err: new ApiError(404, 'NotFound', 'pool not found'), text: 'Error from server (NotFound): pool not found' },
  { err: new ApiError(0, 'Unreachable', 'refused'), text: 'Unable to connect to the server: refused' },
  { err: new TypeError('a bug'), text: undefined },
])('$err is told as $text', ({ err, text }) => {
  expect(failureText(err)).toBe(text);
});
