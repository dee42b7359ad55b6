import { execFile } from 'node:child_process';
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';

import { afterAll, beforeAll, expect, test } from '@jest/globals';

import { applyManifests, parseManifests } from '../../hack/control-plane/apply.ts';
import { resolvePrograms } from '../../hack/control-plane/binaries.ts';
import { writeKubeconfig } from '../../hack/control-plane/kubeconfig.ts';
import type { Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import type { MachineDeployment } from '../../pkg/apis/machine/v1alpha1/machine-deployment.ts';
import { isBeingDeleted } from '../../pkg/apis/meta.ts';
import { InProcessManager } from '../cloud/manager.ts';
import { QUICK, SimulatedCloud } from '../cloud/sim-cloud.ts';
import { Site } from '../cloud/site.ts';
import { eventually } from '../expect/eventually.ts';
import { programFile } from '../processes/program-file.ts';
import { commandsIn, NOT_RUN } from './documented-commands.ts';
import { grant } from './shipped-roles.ts';

/*
 * What the documentation tells people to type is typed, page by page, on a cluster with Machines and a manager at work.
 */
const ROOT = resolve(import.meta.dirname, '../..');
const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8');
const PAGES = globSync(['README.md', 'docs/{concepts,operations,runbooks}/*.md'], { cwd: ROOT }).toSorted();
const NAMESPACE = 'machinist';
const GROUP = `/apis/machine.sapcloud.io/v1alpha1/namespaces/${NAMESPACE}`;
const PATIENCE = { timeoutMs: 120_000, intervalMs: 100 };

let site: Site;
let cloud: SimulatedCloud;
let manager: InProcessManager;
/** Where commands are typed: what the documentation calls by relative paths is there. */
let place: string;

beforeAll(async () => {
  site = await Site.open({ installed: false });
  place = mkdtempSync(join(tmpdir(), 'typed-'));
  await equip();
  await applyManifests(site.api, parseManifests(read('deploy/namespace.yaml')));
  await type('kubectl apply --server-side -f crds/');
  for (const file of ['control', 'control-identity', 'target', 'sim-driver'] as const) {
    await grant(site.api, file, NAMESPACE);
  }
  cloud = await SimulatedCloud.start({ site, latencyMs: QUICK });
  const access = { kubeconfig: site.kubeconfig, namespace: NAMESPACE, driver: cloud.address };
  manager = await InProcessManager.start({ ...access, flags: { 'leader-elect': 'true' } });
  // The example, by the names that the documentation uses.
  const example = read('deploy/examples/sim.yaml').replaceAll(/name: example(?:-small)?$/gm, 'name: workers');
  await applyManifests(site.api, parseManifests(example));
  const others = named().map((name) =>
    example.replaceAll('name: workers', `name: ${name}`).replace('replicas: 2', 'replicas: 0'),
  );
  writeFileSync(join(place, 'others.yaml'), others.join('\n---\n'));
  // As users do: there are commands about what was applied last.
  await type('kubectl apply -f others.yaml');
  for (const generation of ['1', '2']) {
    await patch({ spec: { template: { metadata: { annotations: { generation } } } } });
    await type('machinist rollout status workers');
  }
}, 300_000);

afterAll(async () => {
  await manager[Symbol.asyncDispose]();
  await cloud[Symbol.asyncDispose]();
  await site[Symbol.asyncDispose]();
  rmSync(place, { recursive: true, force: true });
});

/** Programs, kubeconfig and files. */
async function equip(): Promise<void> {
  mkdirSync(join(place, 'bin'));
  const { kubectl, helm } = await resolvePrograms(['kubectl', 'helm']);
  for (const { name, path } of [kubectl, helm]) symlinkSync(path, join(place, 'bin', name));
  const { file } = programFile('machinist');
  writeFileSync(join(place, 'bin/machinist'), `#!/bin/sh\nexec ${process.execPath} ${file} "$@"\n`, { mode: 0o755 });
  for (const folder of ['crds', 'deploy']) symlinkSync(join(ROOT, folder), join(place, folder));
  // The roles are there, and Helm refuses to take over what it has not made.
  writeFileSync(join(place, 'values.yaml'), 'rbac: { create: false }\n');
  const { url, ca } = site.plane.connection;
  const identity = await site.plane.connection.credentialFor({ user: 'admin', groups: ['system:masters'] });
  writeKubeconfig(join(place, 'kubeconfig'), { url, ca, identity, namespace: NAMESPACE });
}

/** Types a command as it stands; rejects, with what it said, when it fails. */
async function type(command: string): Promise<string> {
  const env = {
    ...programFile('machinist').env,
    PATH: `${join(place, 'bin')}:${process.env['PATH']}`,
    KUBECONFIG: join(place, 'kubeconfig'),
    // Nobody edits anything.
    EDITOR: 'true',
  };
  return (await promisify(execFile)('sh', ['-euc', command], { cwd: place, env, timeout: 120_000 })).stdout;
}

async function patch(body: unknown): Promise<void> {
  await site.api.send('PATCH', `${GROUP}/machinedeployments/workers`, body);
}

/** One of the machines, when nothing happens to any: they all run, and were asked for. */
async function someMachine(): Promise<string> {
  return await eventually(async () => {
    const deployment = await site.api.send<MachineDeployment>('GET', `${GROUP}/machinedeployments/workers`);
    const { items } = await site.api.send<{ items: Machine[] }>('GET', `${GROUP}/machines`);
    const running = items.filter((one) => !isBeingDeleted(one) && one.status?.currentStatus?.phase === 'Running');
    expect(deployment.status?.observedGeneration).toBe(deployment.metadata.generation);
    expect(deployment.status?.updatedReplicas).toBe(deployment.spec.replicas);
    expect([items.length, running.length]).toEqual([deployment.spec.replicas, deployment.spec.replicas]);
    return running[0]?.metadata.name ?? '';
  }, PATIENCE);
}

/** MachineDeployments that pages name beside `workers`. */
function named(): readonly string[] {
  const names = [...typed].flatMap((command) => /\b(?:mcd|machinedeployment) +([a-z][\w-]*)/.exec(command)?.[1] ?? []);
  return [...new Set(names)].filter((name) => name !== 'workers');
}

/** A name that a page leaves open, but not the heading of a column. */
const OPEN = /\bNAME\b(?!:)/g;

/** With names for what pages leave open, but for `NAME`, which is a machine's, or its Node's. */
function filledIn(command: string): string {
  return command
    .replaceAll(/\bNS\b/g, NAMESPACE)
    .replaceAll(/\b(machineclass|mcc|machinedeployment|mcd|rollout \w+)([ /])NAME\b/g, '$1$2workers')
    .replaceAll(/\bworker(?:s-7d9f4-x2k8p|-[a-z]?\d)\b|<machine>/g, 'NAME')
    .replaceAll('NUMBER', '3')
    .replaceAll('<name>', 'x');
}

/** Types a command about some machine; about another one, if a command before it has deleted that meanwhile. */
async function typeFilledIn(command: string): Promise<void> {
  const machine = command.search(OPEN) >= 0 ? await someMachine() : '';
  try {
    await type(command.replaceAll(OPEN, machine));
  } catch (err) {
    if (machine === '' || machine === (await someMachine())) throw err;
    await type(command.replaceAll(OPEN, await someMachine()));
  }
}

/** What is typed before a command, so that there is what it is for. */
const BEFORE: Readonly<Record<string, string>> = {
  // What autoscalers are to be added to; the next command is for who has no chart.
  'helm upgrade machinist deploy/helm/machinist --namespace machinist --values values.yaml --set autoscaler.enabled=true':
    'helm install machinist deploy/helm/machinist --namespace machinist --values values.yaml',
  'kubectl -n machinist patch deployment machine-controller-manager --type=json --patch-file=deploy/autoscaler/machinist-port.patch':
    'helm rollback machinist 1 --namespace machinist',
  // What is migrated from.
  'kubectl -n machinist scale deployment machine-controller-manager --replicas=0':
    'helm uninstall machinist && kubectl create deployment machine-controller-manager --image=registry.example/mcm:1',
  // What is restored; a page before may have uninstalled it.
  'kubectl scale deployment machine-controller-manager --replicas=0':
    'kubectl get deployment machine-controller-manager || kubectl create deployment machine-controller-manager --image=registry.example/mcm:1',
  // A page before leaves a Deployment of another origin.
  'helm install machinist deploy/helm/machinist --namespace machinist --create-namespace --skip-crds --values values.yaml':
    'kubectl delete deployment machine-controller-manager --ignore-not-found',
  // What is upgraded.
  'helm upgrade machinist deploy/helm/machinist --namespace machinist --skip-crds --values values.yaml':
    'helm uninstall machinist --ignore-not-found; kubectl delete deployment machine-controller-manager --ignore-not-found; helm install machinist deploy/helm/machinist --namespace machinist --values values.yaml',
  'kubectl -n machinist annotate machinedeployment --all machine.sapcloud.io/max-replacements=0':
    'kubectl annotate machinedeployment workers machine.sapcloud.io/max-replacements-',
};

/** Commands of each page that no page before it has, but for those that are not run. */
const typed = new Set<string>();
const CASES = PAGES.map((page) => {
  const isRun = (command: string): boolean => !NOT_RUN.some(([words]) => words.test(command));
  const commands = commandsIn(read(page)).filter(isRun).map(filledIn);
  const news = commands.filter((command) => !typed.has(command));
  for (const command of news) typed.add(command);
  return { page, commands: news };
}).filter(({ commands }) => commands.length > 0);

test.each(CASES)(
  'commands of $page can be typed',
  async ({ commands }) => {
    const failed: string[] = [];
    for (const command of commands) {
      try {
        if (BEFORE[command] !== undefined) await type(BEFORE[command]);
        await typeFilledIn(
          command
            .replaceAll('http://POD:10258', manager.url)
            // No pod runs here, and that something needs attention is no mistake of the command.
            .replace(/^machinist status.*/, (words) => `${words} --url ${manager.url} || test $? = 1`),
        );
      } catch (err) {
        failed.push(`${command}: ${err instanceof Error && 'stderr' in err ? String(err.stderr) : String(err)}`);
      }
    }

    expect(failed).toEqual([]);
  },
  300_000,
);

test('a command that is wrong is noticed, and what is not run is there', async () => {
  await expect(type('kubectl get nonsense')).rejects.toThrow('nonsense');
  const all = PAGES.flatMap((page) => commandsIn(read(page)));
  expect(NOT_RUN.filter(([words]) => !all.some((command) => words.test(command)))).toEqual([]);
});
