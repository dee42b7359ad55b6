import { Writable } from 'node:stream';

import { expect, test } from '@jest/globals';

import type { Machine } from '../apis/machine/v1alpha1/machine.ts';
import { FakeClock } from '../clock/fake-clock.ts';
import { ApiError } from '../kube/errors.ts';
import type { ListWatch } from '../kube/list-watch.ts';
import { machines } from '../kube/resource.ts';
import { createLogger } from '../log/logger.ts';
import { ReflectedInformer } from './reflected-informer.ts';

test('names cluster and kind once in each line of its log', async () => {
  const ended = new AbortController();
  const lines: string[] = [];
  const output = new Writable({
    write(line, _encoding, done) {
      lines.push(String(line));
      ended.abort();
      done();
    },
  });
  const refused = (): never => {
    throw new ApiError(0, 'Unreachable', 'connect ECONNREFUSED');
  };
  const source: ListWatch<Machine> = {
    resource: machines,
    selection: {},
    list: () => Promise.reject(new ApiError(0, 'Unreachable', 'connect ECONNREFUSED')),
    watch: refused,
    answeredSince: () => Promise.resolve(),
  };
  const log = createLogger('debug', output);
  const informer = new ReflectedInformer({ source, clock: new FakeClock(), log, cluster: 'control' });

  await informer.run(ended.signal);

  expect(lines).toHaveLength(1);
  expect(lines[0]?.match(/"(?:kind|cluster)":/g)?.toSorted()).toEqual(['"cluster":', '"kind":']);
});
