import type { Node } from '../../../pkg/apis/wire.ts';
import type { Random } from '../../../pkg/base/random/random.ts';
import { isUninitialized, UNINITIALIZED_TAINT } from '../../../packages/providers/sim/node.ts';
import type { SimulatedAPIServer } from '../api-server/api-server.ts';
import type { VirtualTime } from './virtual-clock.ts';

const MINUTE_MS = 60_000;
/** How long it takes to initialize a Node, at most. */
const LONGEST_MS = 20_000;
/** How long it works without a break, and how long it is away, at most: longer than a creation timeout. */
const AT_WORK_MS = 120 * MINUTE_MS;
const AWAY_MS = 30 * MINUTE_MS;

/** As a cloud controller manager does with Nodes that register: it takes their taint away, unless it is away itself. */
export function initializeNodes(server: SimulatedAPIServer, time: VirtualTime, random: Random): void {
  /** The break that is over last, or to come next; from then on it is drawn when it is due. */
  let away = { fromMs: random() * AT_WORK_MS, untilMs: 0 };
  const backInMs = (): number => {
    while (away.untilMs < time.elapsedMs) {
      const fromMs = Math.max(away.fromMs, away.untilMs + random() * AT_WORK_MS);
      away = { fromMs, untilMs: fromMs + random() * AWAY_MS };
    }
    return away.fromMs <= time.elapsedMs ? away.untilMs - time.elapsedMs : 0;
  };
  const initialize = (name: string): void => {
    time.schedule(backInMs() + random() * LONGEST_MS, () => {
      const path = `/api/v1/nodes/${name}`;
      const found = server.handle({ method: 'GET', path });
      if ('watch' in found || found.code !== 200 || !isUninitialized(found.body as object)) return;
      if (backInMs() > 0) return initialize(name);
      const taints = (found.body as Node).spec?.taints?.filter(({ key }) => key !== UNINITIALIZED_TAINT.key);
      const contentType = 'application/merge-patch+json';
      server.handle({ method: 'PATCH', path, body: { spec: { taints } }, contentType });
    });
  };
  server.objects.onChange(({ plural }, { type, object, previous }) => {
    if (plural !== 'nodes' || type === 'DELETED' || !isUninitialized(object)) return;
    if (previous === undefined || !isUninitialized(previous)) initialize(object.metadata.name);
  });
}
