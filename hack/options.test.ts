import { expect, jest, test } from '@jest/globals';

import { number, parseOptions, text } from './options.ts';

const OPTIONS = {
  machines: number('machines', 30),
  port: number('port; a free one otherwise'),
  managerFlags: text('flags of the manager', ''),
  logs: text('folder for logs'),
};

function read(...argv: string[]) {
  return parseOptions('Measures something.', OPTIONS, argv);
}

test.each([
  { typed: '', want: {} },
  { typed: '--machines 5 --logs here', want: { machines: 5, logs: 'here' } },
  { typed: '--port=0 --machines=0', want: { port: 0, machines: 0 } },
  { typed: '--manager-flags=--expose-gc', want: { managerFlags: '--expose-gc' } },
])('"$typed" is read, and the rest is as it is otherwise', ({ typed, want }) => {
  const values = read(...typed.split(' ').filter((word) => word !== ''));

  expect(values).toEqual({ machines: 30, port: undefined, managerFlags: '', logs: undefined, ...want });
});

test.each([
  { typed: '--machines many', says: "option '--machines <n>' argument 'many' is invalid" },
  { typed: '--machines -1', says: "option '--machines <n>' argument '-1' is invalid" },
  { typed: '--machine 5', says: "unknown option '--machine'" },
  { typed: '5', says: 'too many arguments' },
])('"$typed" is refused', ({ typed, says }) => {
  const written = jest.spyOn(process.stderr, 'write').mockReturnValue(true);

  expect(() => read(...typed.split(' '))).toThrow(says);

  expect(written).toHaveBeenCalled();
  written.mockRestore();
});
