import { expect, test } from '@jest/globals';

import { underLease } from './leadership.ts';

test('work begins when we lead, and the Lease is released after its last mutation', async () => {
  const done: string[] = [];
  const note = (what: string) => (): Promise<void> => {
    done.push(what);
    return Promise.resolve();
  };
  const candidate = {
    acquire: note('acquired'),
    release: async (mutationsEnded: () => Promise<void>) => {
      await mutationsEnded();
      done.push('released');
    },
  };
  const member = underLease('lease', candidate, { begin: note('began'), end: note('ended') });

  await member.start(new AbortController().signal);
  await member.stop(0);

  expect(done).toEqual(['acquired', 'began', 'ended', 'released']);
});
