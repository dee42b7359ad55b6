import { expect, test } from '@jest/globals';
import { Registry } from 'prom-client';

import { machine, machineClass } from '../../test/builders.ts';
import { MINUTE, SECOND } from '../../test/durations.ts';
import { FakeClock } from '../../test/fakes/fake-clock.ts';
import type { KubeObject, List } from '../apis/meta.ts';
import type { Resource } from '../apis/resource.ts';
import { untilAborted } from '../base/clock/deadline.ts';
import { silentLogger } from '../base/log/logger.ts';
import { gateMetrics } from '../base/metrics/gate.ts';
import { ClusterContinuity } from '../kube/cache/cluster-continuity.ts';
import { ObservedHistory } from '../kube/cache/observed-history.ts';
import { ReflectedInformer } from '../kube/cache/reflected-informer.ts';
import { ApiError } from '../kube/client/errors.ts';
import type { ListWatch } from '../kube/client/list-watch.ts';
import { machineClasses, machines } from '../kube/client/resource.ts';
import { CONTROL } from '../kube/gate/gate.ts';
import { Outages } from '../kube/gate/outages.ts';
import { type ProbedKind, probesOf } from './probes.ts';

const never = new Promise<never>(() => undefined);

/** A control cluster at 100, with the classes that are probed, and two Machines; all of it is cached. */
async function start({ isOptional = false } = {}) {
  const clock = new FakeClock();
  const ended = new AbortController();
  const server = {
    at: '100',
    machines: ['m-1', 'm-2'],
    refused: new Set<string>(),
  };
  const told: string[] = [];
  const made = (name: string) => machine((m) => Object.assign(m.metadata, { name, uid: name, resourceVersion: '50' }));
  const classes = [machineClass((one) => Object.assign(one.metadata, { resourceVersion: '40' }))];
  const stored = ({ plural }: Resource<KubeObject>): readonly KubeObject[] => {
    if (server.refused.has(plural)) throw new ApiError(403, 'Forbidden', `may not read ${plural}`);
    return plural === 'machines' ? server.machines.map(made) : classes;
  };
  const list = async (resource: Resource<KubeObject>, fieldSelector = ''): Promise<List<KubeObject>> => ({
    metadata: { resourceVersion: server.at },
    items: stored(resource).filter(({ metadata }) => [`metadata.name=${metadata.name}`, ''].includes(fieldSelector)),
  });
  const reader = {
    list: (resource: Resource<KubeObject>, { fieldSelector = '' } = {}) => list(resource, fieldSelector),
    get: async (resource: Resource<KubeObject>, { name }: { name: string }) => {
      const found = stored(resource).find(({ metadata }) => metadata.name === name);
      if (found === undefined) throw new ApiError(404, 'NotFound', 'gone');
      return found;
    },
  } as unknown as ProbedKind['reader'];
  const continuity = new ClusterContinuity(clock);
  const kinds = [machineClasses, machines].map((resource): ProbedKind => {
    const history = new ObservedHistory();
    const at = { resource, namespace: undefined, labelSelector: undefined, reader, isOptional };
    const member = continuity.add({ ...at, history }, { isOptional });
    const source: ListWatch<KubeObject> = {
      resource,
      selection: {},
      list: () => list(resource),
      // oxlint-disable-next-line require-yield -- it has nothing to say
      async *watch({ signal, onOpen }) {
        onOpen?.();
        return await untilAborted(never, signal);
      },
      answeredSince: () => Promise.resolve(),
    };
    const how = { clock, log: silentLogger, cluster: CONTROL, streamLists: false, random: () => 0, history };
    const informer = new ReflectedInformer<KubeObject>({ ...how, source, continuity: member });
    informer.onChange((old, current) => {
      if (current === undefined) told.push(`lost ${old?.metadata.name}`);
    });
    void informer.run(ended.signal);
    return {
      ...at,
      informer,
      get isGivenUp() {
        return member.isGivenUp;
      },
      giveUp: (refusal) => {
        if (!member.giveUp(refusal)) throw refusal;
      },
    };
  });
  await clock.advanceAsync(SECOND);
  const metrics = gateMetrics(new Registry());
  const outages = new Outages({ clock, log: silentLogger, metrics, periodMs: 10 * SECOND, timeoutMs: 30 * SECOND });
  outages.onChange(({ isOver, isSetBack }) => told.push(`set back: ${isSetBack}, over: ${isOver}`));
  const probed = { cluster: CONTROL, probe: () => Promise.resolve() };
  for (const one of probesOf([{ probed, continuity }], [{ cluster: CONTROL, kinds }])) outages.add(one);
  await clock.advanceAsync(SECOND);
  const end = async (): Promise<void> => {
    ended.abort();
    await outages.stop();
  };
  return { clock, server, outages, told, end };
}

test.each([{ again: '80' }, { again: '70' }])(
  'a restore is over when what was refused for hours was listed, and who is told of its end knows what is missing: at $again by then',
  async ({ again }) => {
    const { clock, server, outages, told, end } = await start();
    server.refused.add('machines');
    server.at = '80';
    server.machines = ['m-1'];

    await clock.advanceAsync(60 * MINUTE);
    server.at = again;
    await clock.advanceAsync(60 * MINUTE);
    const during = [...told];
    const { lastError } = outages.state(CONTROL) ?? {};
    server.refused.clear();
    await clock.advanceAsync(MINUTE);
    await end();

    expect([during, lastError]).toEqual([
      ['set back: true, over: false'],
      'not permitted to read machines.machine.sapcloud.io',
    ]);
    expect(told).toEqual([...during, 'lost m-2', 'set back: true, over: true']);
  },
);

test('what we can do without keeps a restore from its end for no longer than a server that starts', async () => {
  const { clock, server, told, end } = await start({ isOptional: true });
  server.refused.add('machines');
  server.at = '80';

  await clock.advanceAsync(MINUTE);
  await end();

  expect(told).toEqual(['set back: true, over: false', 'set back: true, over: true']);
});
