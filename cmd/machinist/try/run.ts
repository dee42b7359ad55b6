import { setTimeout as sleep } from 'node:timers/promises';

import type { KubeObject } from '../../../pkg/apis/meta.ts';
import type { Resource } from '../../../pkg/apis/resource.ts';
import type { New } from '../../../pkg/kube/client/client.ts';
import { ignoreAlreadyExists } from '../../../pkg/kube/client/errors.ts';
import {
  customResourceDefinitions,
  machineClasses,
  machineDeployments,
  machines,
  namespaces,
  secrets,
} from '../../../pkg/kube/client/resource.ts';
import type { CommandCluster } from '../command-cluster.ts';
import { CommandError } from '../command-error.ts';
import type { PrintLine } from '../terminal.ts';
import { confirm } from './confirm.ts';
import { isServed, KINDS, look } from './look.ts';
import { TriedManager } from './manager.ts';
import {
  definitions,
  FLEET,
  machineClass,
  machineDeployment,
  MACHINES,
  NAMESPACE,
  namespaceObject,
  secret,
} from './objects.ts';
import { type Plan, planOf } from './plan.ts';
import { showingMachines } from './progress.ts';
import type { Site } from './site.ts';
import type { TryOptions } from './try.ts';

const LOOK_MS = 500;

/** Creates the examples and runs the manager until the signal is aborted. Throws CommandError. */
export async function run(site: Site, options: TryOptions, out: PrintLine, signal: AbortSignal): Promise<void> {
  const { cluster, directory, env } = site;
  const plan = acceptable(planOf(await look(cluster)));
  const made = [
    ...(plan.definitions.length === 0 ? [] : [`CustomResourceDefinitions ${plan.definitions.join(', ')}`]),
    `Namespace ${NAMESPACE} with a Secret, a MachineClass, a MachineDeployment of ${MACHINES} machines, Leases and Events`,
    `${MACHINES} Nodes with a taint, on which no pods run, and their Leases in kube-node-lease`,
  ];
  const what = plan.isResumed
    ? ['Continue what machinist try has begun in this cluster:', ...made.slice(-2)]
    : ['Run the manager and a simulated provider on this host, and create in the cluster:', ...made];
  await confirm(site, options, what, out, signal);
  await createAll(cluster, plan, signal);

  await using manager = await TriedManager.start({ env, directory });
  out(`The manager runs. Metrics: ${manager.address}/metrics; log: ${manager.logFile}`);
  await showingMachines(cluster, out, async () => {
    const stopped = new Promise<void>((resolve) => {
      signal.addEventListener('abort', () => resolve(), { once: true });
      if (signal.aborted) resolve();
    });
    await Promise.race([untilRunning(cluster, signal), manager.failed, stopped]);
    if (!signal.aborted) for (const line of thingsToTry(options, manager.address)) out(line);
    await Promise.race([stopped, manager.failed]);
  });
  out('Stopping the manager. What it has created stays; machinist try continues, and machinist try --undo removes it.');
}

type CreatePlan = Extract<Plan, { kind: 'create' }>;

function acceptable(plan: Plan): CreatePlan {
  if (plan.kind === 'refuse') throw new CommandError(plan.why);
  return plan;
}

/** What was agreed to, unless somebody else has begun to use the kinds, or the name of the namespace, while it was asked. */
async function createAll(cluster: CommandCluster, agreed: CreatePlan, signal: AbortSignal): Promise<void> {
  acceptable(planOf(await look(cluster)));
  for (const definition of definitions()) {
    if (agreed.definitions.includes(definition.metadata.name))
      await create(cluster, customResourceDefinitions, definition);
  }
  for (const resource of KINDS)
    while (!(await isServed(cluster, resource))) await sleep(LOOK_MS, undefined, { signal });
  await create(cluster, namespaces, namespaceObject);
  // One that was there already is ours, or nothing of what follows may be created in it.
  acceptable(planOf(await look(cluster)));
  await create(cluster, secrets, secret);
  await create(cluster, machineClasses, machineClass);
  await create(cluster, machineDeployments, machineDeployment);
}

async function create<T extends KubeObject>(
  cluster: CommandCluster,
  resource: Resource<T>,
  object: New<T>,
): Promise<void> {
  await cluster.create(resource, object).catch(ignoreAlreadyExists); // from the last time
}

async function untilRunning(cluster: CommandCluster, signal: AbortSignal): Promise<void> {
  for (;;) {
    const all = await cluster.list(machines).catch(() => []);
    const running = all.filter(({ status }) => status?.currentStatus?.phase === 'Running');
    if (running.length >= MACHINES || signal.aborted) return;
    await sleep(LOOK_MS, undefined, { signal }).catch(() => undefined);
  }
}

function thingsToTry({ kubeconfig, context }: TryOptions, manager: string): readonly string[] {
  const access = [
    ...(kubeconfig === '' ? [] : [`--kubeconfig=${kubeconfig}`]),
    ...(context === '' ? [] : [`--context=${context}`]),
    `-n ${NAMESPACE}`,
  ].join(' ');
  return [
    '',
    'All machines are Running. Try in another terminal:',
    '',
    `  kubectl ${access} get mcd,mc`,
    `  kubectl ${access} scale mcd ${FLEET} --replicas=4`,
    `  kubectl ${access} delete mc --all`,
    `  machinist tree ${access}`,
    `  machinist status ${access} --url=${manager}`,
    '',
    'Ctrl-C stops the manager; machinist try --undo removes everything.',
    '',
  ];
}
