import { setTimeout as sleep } from 'node:timers/promises';

import { HOUR } from '../durations.ts';
import type { KubeObject } from '../../pkg/apis/meta.ts';
import { JumpingClock } from '../cloud/jumping-clock.ts';
import type { FaultRow, Trial } from '../cloud/trial.ts';
import { eventually } from '../expect/eventually.ts';

/*
 * Rows of fault-table.test.ts about what goes wrong in the control cluster and around the process, in the middle of a roll and once
 * more at rest.
 */

const GROUP = '/apis/machine.sapcloud.io/v1alpha1';
const WEBHOOKS = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations';
const EVENTS_A_MINUTE = 10_000;
const EVENTS_AT_ONCE = 10;
const PATIENCE = { timeoutMs: 240_000, intervalMs: 50 };

/** Resolves when machines are being replaced; at once at rest after a roll. */
async function untilRolling({ cloud }: Trial, machines: number): Promise<void> {
  await eventually(() => cloud.created.length > machines, { ...PATIENCE, describe: 'a roll' });
}

/** Something that is wrong for a while. */
function during(
  machines: number,
  awayMs: number,
  begin: (trial: Trial) => Promise<() => Promise<void>>,
): NonNullable<FaultRow['disturb']> {
  return async (trial, over) => {
    await untilRolling(trial, machines);
    const end = await begin(trial);
    await sleep(awayMs, undefined, { signal: over }).catch(() => undefined);
    await end();
  };
}

/** A webhook that nobody answers for, and without which nothing about machines may be written. */
async function refuseWrites({ site: { api }, pool: { namespace } }: Trial): Promise<() => Promise<void>> {
  const webhook = {
    name: 'unreachable.machinist.test',
    failurePolicy: 'Fail',
    sideEffects: 'None',
    admissionReviewVersions: ['v1'],
    timeoutSeconds: 1,
    clientConfig: { url: 'https://127.0.0.1:9/' },
    namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
    rules: [
      {
        apiGroups: ['machine.sapcloud.io'],
        apiVersions: ['*'],
        operations: ['CREATE', 'UPDATE', 'DELETE'],
        resources: ['machines', 'machines/status', 'machinesets'],
      },
    ],
  };
  await api.request(WEBHOOKS, { method: 'POST', body: { metadata: { name: namespace }, webhooks: [webhook] } });
  return async () => void (await api.request(`${WEBHOOKS}/${namespace}`, { method: 'DELETE' }));
}

/** Takes an object away, whatever holds it; resolves with what makes it again. */
async function takeAway({ site: { api } }: Trial, collection: string): Promise<() => Promise<void>> {
  const path = `${collection}/pool`;
  const { body } = await api.request(path);
  const { metadata, ...rest } = body as KubeObject; // an object of that collection
  await eventually(
    async () => {
      await api.request(path, { method: 'DELETE' });
      const noFinalizers = { metadata: { finalizers: null } };
      await api.request(path, { method: 'PATCH', contentType: 'application/merge-patch+json', body: noFinalizers });
      return (await api.request(path)).status === 404;
    },
    { ...PATIENCE, describe: `${path} to be gone` },
  );
  const { name, namespace } = metadata;
  return async () => {
    const answer = await api.request(collection, { method: 'POST', body: { ...rest, metadata: { name, namespace } } });
    if (answer.status !== 201) throw new Error(`POST ${collection}: ${answer.status} ${JSON.stringify(answer.body)}`);
  };
}

/** Events about a machine, by somebody else. */
async function flood({ site: { api }, pool }: Trial, forMs: number, over: AbortSignal): Promise<void> {
  const { namespace } = pool;
  const name = (await pool.machines())[0]?.metadata.name ?? 'none';
  const involvedObject = { apiVersion: 'machine.sapcloud.io/v1alpha1', kind: 'Machine', namespace, name };
  const post = async (): Promise<unknown> =>
    api.request(`/api/v1/namespaces/${namespace}/events`, {
      method: 'POST',
      body: {
        metadata: { generateName: 'flood-' },
        involvedObject,
        type: 'Warning',
        reason: 'Flood',
        message: 'x'.repeat(500),
      },
    });
  const rounds = (EVENTS_A_MINUTE / EVENTS_AT_ONCE) * (forMs / 60_000);
  for (let i = 0; i < rounds && !over.aborted; i++) {
    await Promise.all([
      sleep(60_000 / (EVENTS_A_MINUTE / EVENTS_AT_ONCE)),
      ...Array.from({ length: EVENTS_AT_ONCE }, post),
    ]);
  }
}

/** The clock of a host that was an hour behind when the process started, and still is. */
function behind(): JumpingClock {
  const clock = new JumpingClock();
  clock.offsetMs = -HOUR;
  clock.reanchor(clock.now() - HOUR);
  return clock;
}

/** The rows; `awayMs` is how long something is wrong. */
export function controlClusterRows(machines: number, awayMs: number): readonly FaultRow[] {
  const classes = ({ pool }: Trial): string => `${GROUP}/namespaces/${pool.namespace}/machineclasses`;
  const secrets = ({ pool }: Trial): string => `/api/v1/namespaces/${pool.namespace}/secrets`;
  return [
    { what: 'a webhook fails for everything that is written', disturb: during(machines, awayMs, refuseWrites) },
    {
      what: 'the MachineClass vanishes',
      disturb: during(machines, awayMs, (trial) => takeAway(trial, classes(trial))),
    },
    {
      what: 'the Secret vanishes',
      disturb: during(machines, awayMs, (trial) => takeAway(trial, secrets(trial))),
    },
    {
      what: 'ten thousand Events a minute are written',
      disturb: async (trial, over) => {
        await untilRolling(trial, machines);
        await flood(trial, awayMs, over);
      },
    },
    { what: 'the clock of the host is an hour behind', run: { clock: behind() } },
    {
      what: 'the API server answers in four seconds',
      takesMinutes: true,
      answersAfterMs: 4_000,
      mostMachines: 2,
      flags: { 'leader-elect': 'true' },
    },
    {
      what: 'the driver stands still',
      kind: 'delay',
      // Instead of ten minutes.
      run: { hooks: { driverMutationTimeoutMs: 4_000 } },
      disturb: during(machines, awayMs, ({ cloud }) => {
        cloud.setFaults([{ method: '*', effect: 'hang' }]);
        return Promise.resolve(() => Promise.resolve(cloud.setFaults([])));
      }),
    },
    {
      what: 'a creation that is repeated makes a second VM, and answers are lost',
      kind: 'delay',
      capabilities: { idempotentCreate: false },
      faults: [
        { method: 'CreateMachine', effect: 'late', delayMs: 8_000, times: 3 },
        { method: 'CreateMachine', effect: 'duplicate' },
      ],
      run: { hooks: { driverMutationTimeoutMs: 4_000 } },
    },
  ];
}
