import { expect, test } from '@jest/globals';

import { node, pod, type BuiltNode } from '../../test/builders.ts';
import { FakeClock } from '../../test/fakes/fake-clock.ts';
import { MemoryClient } from '../../test/memory-client.ts';
import { MemoryInformer } from '../../test/memory-informer.ts';
import type { Node, Pod, VolumeAttachment } from '../apis/wire.ts';
import { toTimestamp } from '../base/clock/clock.ts';
import { untilAborted } from '../base/clock/deadline.ts';
import { silentLogger } from '../base/log/logger.ts';
import type { WatchEvent } from '../kube/client/watch.ts';
import { nodes } from '../kube/client/resource.ts';
import type { Target } from '../kube/targets/targets.ts';
import { createDrainer } from './drainer.ts';
import { DrainLimits } from './limits.ts';

const HOUR_MS = 3_600_000;
const signal = new AbortController().signal;

/** Drains a Node with one pod; when that was evicted, after so long, there is another one, made at that moment by the clock of the server. */
async function evictedWith({ serverAheadMs, afterMs }: { serverAheadMs: number; afterMs: number }) {
  const clock = new FakeClock();
  const podAt = (uid: string): Pod =>
    pod((p) => {
      Object.assign(p.metadata, { name: uid, uid, creationTimestamp: toTimestamp(clock.now() + serverAheadMs) });
    });
  const events: WatchEvent<Pod>[] = [];
  let wake = Promise.withResolvers<void>();
  const tell = (event: WatchEvent<Pod>): void => {
    events.push(event);
    wake.resolve();
  };
  const first = podAt('first');
  const client = new MemoryClient();
  const live: BuiltNode = node();
  client.put(nodes, live);
  const evicted: string[] = [];
  const evict = (one: Pod): Promise<void> => {
    evicted.push(one.metadata.uid);
    if (one === first) {
      clock.advance(afterMs);
      tell({ type: 'ADDED', object: podAt('second') });
    }
    tell({ type: 'DELETED', object: one });
    return Promise.resolve();
  };
  const target = {
    cluster: 'target',
    reader: client,
    writer: Object.assign(client, { evict }),
    nodes: new MemoryInformer<Node>([live]),
    volumeAttachments: new MemoryInformer<VolumeAttachment>(),
  } as unknown as Target;
  const drain = createDrainer({
    clock,
    log: silentLogger,
    limits: new DrainLimits(),
    podsOf: () => ({
      list: () => Promise.resolve({ items: [first], metadata: { resourceVersion: '1' } }),
      async *watch({ signal: ended }) {
        for (;;) {
          yield* events.splice(0);
          await untilAborted(wake.promise, ended ?? signal);
          wake = Promise.withResolvers();
        }
      },
    }),
  });
  const outcome = await drain(
    {
      target,
      nodeName: live.metadata.name,
      nodeUID: live.metadata.uid,
      barrier: 'cordon',
      force: false,
      deadlineMs: clock.now() + HOUR_MS,
      maxEvictRetries: 3,
      pvDetachTimeoutMs: 1_000,
      pvReattachTimeoutMs: 1_000,
    },
    signal,
  );
  return { outcome: outcome.kind, evicted };
}

test.each([
  { what: 'that is there a moment later', serverAheadMs: 0, afterMs: 1_000, want: ['first', 'second'] },
  {
    what: 'that is there a moment later, by whatever clock',
    serverAheadMs: HOUR_MS,
    afterMs: 1_000,
    want: ['first', 'second'],
  },
  { what: 'that comes long after it', serverAheadMs: 0, afterMs: 60_000, want: ['first'] },
])('of pods that come after the Node was cordoned, one $what leaves: $want', async ({ want, ...given }) => {
  expect(await evictedWith(given)).toEqual({ outcome: 'drained', evicted: want });
});
