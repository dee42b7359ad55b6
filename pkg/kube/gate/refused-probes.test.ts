import { afterEach, expect, test } from '@jest/globals';
import { Registry } from 'prom-client';

import { SECOND } from '../../../test/durations.ts';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { silentLogger } from '../../base/log/logger.ts';
import { gateMetrics } from '../../base/metrics/gate.ts';
import { CONTROL } from './gate.ts';
import { RefusedError } from './outage.ts';
import { OutageDetector } from './outage-detector.ts';

const REFUSED = 'outage began: the API server rejects the requests';
const SILENT = 'outage began: the API server did not respond';
const refused = new RefusedError('machines is forbidden');
const silent = new Error('connection refused');
const failing = new Error('etcdserver: request timed out');
const page = new RefusedError('server returned 404: <html>');

const detectors: OutageDetector[] = [];
afterEach(async () => {
  for (const detector of detectors.splice(0)) await detector.stop();
});

/** What is said of a cluster whose probes end with these, one after the other, the last for ever. */
async function errorsOf(cluster: string, answers: readonly (Error | undefined)[], lack?: string): Promise<string[]> {
  return (await probed(cluster, answers, lack)).errors;
}

async function probed(cluster: string, answers: readonly (Error | undefined)[], lack?: string) {
  const clock = new FakeClock();
  const errors: string[] = [];
  const left = [...answers];
  const probe = async (): Promise<void> => {
    const answer = left.length > 1 ? left.shift() : left[0];
    if (answer !== undefined) throw answer;
  };
  const detector = new OutageDetector(
    { cluster, probe, lackOfCredentials: lack, isAnswer: (err) => err === refused || err === failing },
    {
      clock,
      log: { ...silentLogger, error: (_fields, message) => void errors.push(message) },
      metrics: gateMetrics(new Registry()),
      periodMs: 10 * SECOND,
      timeoutMs: 30 * SECOND,
      changed: ({ why, isWithoutCredentials }) => isWithoutCredentials && errors.push(why),
    },
  );
  detectors.push(detector);
  detector.start();
  await clock.advanceAsync(120 * SECOND);
  return { errors, answeredMs: detector.state.answeredMs, nowMs: clock.monotonicMs() };
}

test.each([
  { what: 'a refusal is an answer', answers: [undefined, refused], isRecent: true },
  { what: 'an error of the server itself is an answer', answers: [undefined, failing], isRecent: true },
  { what: 'a refusal by what stands before it is none', answers: [undefined, page], isRecent: false },
  { what: 'that there is no connection is none', answers: [undefined, silent], isRecent: false },
])('$what', async ({ answers, isRecent }) => {
  const { answeredMs = 0, nowMs } = await probed('target', answers);

  expect(nowMs - answeredMs < 10 * SECOND).toBe(isRecent);
});

test.each([
  {
    what: 'by the control cluster from the start is for the start checks to tell',
    cluster: CONTROL,
    answers: [refused],
    want: [],
  },
  {
    what: 'at first, and then not answered, is an outage',
    cluster: CONTROL,
    answers: [refused, silent],
    want: [SILENT],
  },
  {
    what: 'by the control cluster that had answered is an outage',
    cluster: CONTROL,
    answers: [undefined, refused],
    want: [REFUSED],
  },
  {
    what: 'by a target is an outage: the process goes on without it',
    cluster: 'target',
    answers: [refused],
    want: [REFUSED],
  },
  { what: 'and not answered differ', cluster: CONTROL, answers: [silent], want: [SILENT] },
])('to be refused $what', async ({ cluster, answers, want }) => {
  expect(await errorsOf(cluster, answers)).toEqual(want);
});

test('a probe that cannot be sent for want of credentials is told as that, whatever it ends with', async () => {
  expect(await errorsOf('target', [undefined, silent], 'the plugin hangs')).toEqual([
    'outage began: no valid credentials',
    'the plugin hangs',
  ]);
});
