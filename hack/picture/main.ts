import { execFile } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';

import type { MachineDeployment } from '../../pkg/apis/machine/v1alpha1/machine-deployment.ts';
import { Terminal } from '../../test/terminal/terminal.ts';
import { svgOf } from './svg.ts';

/*
 * Draws the picture of the README: the demo on a real terminal, with a drain that a PodDisruptionBudget blocks and a class that the provider
 * refuses. Run it by hand after the screen of `machinist top` has changed: node hack/picture/main.ts
 */
const ROOT = path.resolve(import.meta.dirname, '../..');
const PICTURE = path.join(ROOT, 'docs/images/top.svg');
const SIZE = { columns: 110, rows: 32 };
const UP_MS = 300_000;

/** Types a command in the shell of the demo. */
async function type(command: string): Promise<string> {
  return (await promisify(execFile)('sh', ['-euc', `. .demo/env; ${command}`], { cwd: ROOT })).stdout.trim();
}

async function blockDrain(): Promise<void> {
  const [name = '', node = ''] = (
    await type(`k get mc -o 'jsonpath={.items[0].metadata.name} {.items[0].metadata.labels.node}'`)
  ).split(' ');
  await type(`sed 's/NODE/${node}/' .demo/manifests/guarded-pod.yaml | k apply -f -`);
  await type('k -n default wait --for=condition=Ready pod/guarded --timeout=60s');
  await type(`k -n default wait --for=jsonpath='{.status.currentHealthy}'=1 pdb/guarded --timeout=60s`);
  await type(`k delete mc ${name} --wait=false`);
}

/** A second pool whose class the provider refuses. */
async function breakClass(): Promise<void> {
  await type('k apply -f .demo/manifests/broken-class.yaml');
  const { apiVersion, kind, spec } = JSON.parse(await type('k get mcd workers -o json')) as MachineDeployment;
  const labels = { pool: 'gpu' };
  const template = {
    ...spec.template,
    metadata: { labels },
    spec: { ...spec.template.spec, class: { kind: 'MachineClass', name: 'workers-b' } },
  };
  const gpu = {
    apiVersion,
    kind,
    metadata: { name: 'gpu' },
    spec: { ...spec, replicas: 1, selector: { matchLabels: labels }, template },
  };
  const file = path.join(ROOT, '.demo/gpu.json');
  writeFileSync(file, JSON.stringify(gpu));
  await type(`k apply -f ${file}`);
}

await using terminal = await Terminal.start([process.execPath, 'cmd/demo/main.ts', '--machines', '4'], SIZE);
await terminal.shows(/Running 4/, UP_MS);
await blockDrain();
await breakClass();
await terminal.shows(/guarded[^]*gpu|gpu[^]*guarded/, UP_MS);
await terminal.shows(/Retries/, UP_MS);
mkdirSync(path.dirname(PICTURE), { recursive: true });
writeFileSync(PICTURE, svgOf(terminal.cells, SIZE));
console.log(`wrote ${path.relative(ROOT, PICTURE)}`);
terminal.type('q');
await terminal.shows(/end the demo/);
terminal.type('\u0003');
await terminal.ended();
