import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { afterAll, beforeAll, expect, test } from '@jest/globals';

import { serve } from '../../../test/drivers/served.ts';
import { SystemClock } from '../../../pkg/base/clock/system-clock.ts';
import { parseDriverAddress } from '../../../pkg/driver/grpc/address.ts';
import { SimCloud } from '../../../packages/providers/sim/cloud.ts';
import { SimDriver } from '../../../packages/providers/sim/driver.ts';
import { Faults } from '../../../packages/providers/sim/faults.ts';
import { DEFAULT_SIM_SETTINGS } from '../../../packages/providers/sim/settings.ts';
import type { VerifyCommandOptions } from './command.ts';
import { verifyDriver } from './verify.ts';

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'verify-'));
  await writeFile(path.join(directory, 'class.yaml'), 'kind: MachineClass\nmetadata: { name: c }\nproviderSpec: {}\n');
  await writeFile(path.join(directory, 'secret.yaml'), 'kind: Secret\nstringData: { userData: "#!/bin/sh" }\n');
});
afterAll(async () => {
  await rm(directory, { recursive: true, force: true });
});

/** A driver of a cloud without latency. */
function simulated(): { driver: SimDriver; cloud: SimCloud } {
  const clock = new SystemClock();
  const cloud = new SimCloud({ clock, journal: undefined });
  const latencyMs = { create: 0, initialize: 0, status: 0, delete: 0, list: 0, join: 0 };
  const settings = { ...DEFAULT_SIM_SETTINGS, latencyMs };
  return { driver: new SimDriver({ cloud, faults: new Faults('x'), clock, settings }), cloud };
}

/** Runs the command on the driver at a socket, and keeps what it prints. */
async function run(
  socket: string,
  options: Partial<VerifyCommandOptions> = {},
): Promise<{ code: number; out: string; err: string }> {
  const out: string[] = [];
  const err: string[] = [];
  const given: VerifyCommandOptions = {
    address: parseDriverAddress(`unix://${socket}`),
    class: path.join(directory, 'class.yaml'),
    secret: [path.join(directory, 'secret.yaml')],
    rule: ['creation', 'old-token', 'bad-class'],
    ruleTimeout: 10_000,
    output: 'text',
    ...options,
  };
  const terminal = { out: (line: string) => out.push(line), err: (line: string) => err.push(line), env: {} };
  const code = await verifyDriver(given, terminal);
  return { code, out: out.join('\n'), err: err.join('\n') };
}

test('a driver that keeps the contract is told rule by rule, and nothing is left of it', async () => {
  const { driver, cloud } = simulated();
  await using served = await serve(driver);

  const { code, out } = await run(served.socket);

  expect(code).toBe(0);
  expect(out.split('\n')).toEqual([
    `driver sim at unix://${served.socket}`,
    '',
    'RUN   creation',
    expect.stringMatching(/^PASS {2}creation +\d+ ms$/),
    expect.stringMatching(/^n\/a {3}bad-class +--bad-class is not set$/),
    'RUN   old-token',
    expect.stringMatching(/^PASS {2}old-token +\d+ ms$/),
    '',
    '2 passed, 0 failed, 1 not applicable',
  ]);
  expect(cloud.all()).toEqual([]);
});

test.each([
  {
    output: 'json',
    says: /"failed": 1,[^]*"reason": "CreateMachine returned no node name; expected vm.node_name"/,
  },
  {
    output: 'junit',
    says: /^<\?xml[^]*<failure message="CreateMachine returned no node name; expected vm\.node_name">/,
  },
] as const)('a driver that does not ends with 1, as $output', async ({ output, says }) => {
  const { driver } = simulated();
  const create = driver.createMachine.bind(driver);
  driver.createMachine = async (request, call) => ({ ...(await create(request, call)), nodeName: '' });
  await using served = await serve(driver);

  const { code, out, err } = await run(served.socket, { output });

  expect(code).toBe(1);
  expect(out).toMatch(says);
  expect(err.split('\n')).toEqual(['RUN   creation', 'RUN   old-token']);
});

test.each<{
  what: string;
  options: Partial<VerifyCommandOptions> & { readonly same?: boolean };
  says: RegExp;
}>([
  {
    what: 'an unknown rule',
    options: { rule: ['nonsense'] },
    says: /^error: unknown rule nonsense; the rules are health,/,
  },
  {
    what: 'a file that is not there',
    options: { class: '/no/such/file' },
    says: /^error: cannot read \/no\/such\/file: ENOENT/,
  },
  {
    what: 'a certificate that is not there',
    options: { address: parseDriverAddress('dns:///localhost:1?ca=/no/ca&cert=/no/cert&key=/no/key') },
    says: /^error: cannot read \/no\/ca: ENOENT/,
  },
  {
    what: 'a wrong class that is the class',
    options: { same: true },
    says: /^error: .*class\.yaml has the same providerSpec as .*class\.yaml; --bad-class requires an invalid one$/,
  },
  {
    what: 'a driver that is not there',
    options: {},
    says: /^error: cannot verify the driver at unix:\/\/\/no\/driver: the driver does not respond: GetCapabilities was not answered: no such socket; expected an answer$/,
  },
])('of $what one line is said, with exit code 1', async ({ options: { same, ...options }, says }) => {
  const badClass = same === true ? { badClass: path.join(directory, 'class.yaml') } : {};

  const { code, out, err } = await run('/no/driver', { ...options, ...badClass });

  expect({ code, out }).toEqual({ code: 1, out: '' });
  expect(err).toMatch(says);
  expect(err).not.toContain('\n');
});

test.each([
  { what: 'no Secret', files: [], says: 'note: --secret is not given; the driver gets no credentials' },
  {
    what: 'one without data',
    files: ['empty.yaml'],
    says: /^note: .*empty\.yaml contains no data; the driver gets no/,
  },
])('who gives $what is told so, before the rules', async ({ files, says }) => {
  await writeFile(path.join(directory, 'empty.yaml'), 'kind: Secret\n');
  const { driver } = simulated();
  await using served = await serve(driver);

  const secret = files.map((file) => path.join(directory, file));
  const { out } = await run(served.socket, { secret, rule: ['health'] });

  expect(out.split('\n')[0]).toMatch(says);
});
