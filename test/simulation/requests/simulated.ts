import { join } from 'node:path';

import { SimulatedAPIServer, type APIRequest } from '../api-server/api-server.ts';
import { custom, definitionsIn, kindsWith } from '../api-server/kinds.ts';
import type { Watch } from '../api-server/watch.ts';
import { IRONCORE_KINDS } from '../worlds/ironcore/kinds.ts';
import { MIRANTIS_KINDS } from '../worlds/mirantis/kinds.ts';
import type { Answer } from './compare.ts';

const CRDS = join(import.meta.dirname, '../../../crds');
const CLUSTER_API = definitionsIn(join(CRDS, 'cluster-api')).flatMap(custom);

/** A simulated server of its own, in which a namespace exists. */
export function simulatedServer(namespace: string): SimulatedAPIServer {
  let made = 0;
  const server = new SimulatedAPIServer({
    kinds: [...kindsWith(CRDS), ...IRONCORE_KINDS, ...MIRANTIS_KINDS, ...CLUSTER_API],
    nowMs: () => Date.now(),
    uid: () => `11111111-0000-4000-8000-${String(++made).padStart(12, '0')}`,
    suffix: () => 'abcde',
  });
  server.handle({ method: 'POST', path: '/api/v1/namespaces', body: { metadata: { name: namespace } } });
  return server;
}

/** Its answers, as they come over the wire. */
export function answersOf(server: SimulatedAPIServer): (request: APIRequest) => Promise<Answer> {
  return (request) => {
    const answer = server.handle({ ...request, body: asJSON(request.body) });
    if ('watch' in answer) return Promise.resolve({ code: 200, body: eventsOf(answer.watch) });
    return Promise.resolve({ code: answer.code, body: asJSON(answer.body) });
  };
}

/** What a watch shows of what has happened. */
function eventsOf(watch: Watch): unknown {
  const events: unknown[] = [];
  watch.follow((event) => events.push(event))();
  return asJSON(events);
}

/** As it is after its way over the wire. */
function asJSON(value: unknown): unknown {
  return value === undefined ? undefined : (JSON.parse(JSON.stringify(value)) as unknown);
}
