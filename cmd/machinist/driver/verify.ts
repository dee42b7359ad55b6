import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { isDeepStrictEqual } from 'node:util';

import type { MachineClass } from '../../../pkg/apis/machine/v1alpha1/machine-class.ts';
import { SystemClock } from '../../../pkg/base/clock/system-clock.ts';
import type { SecretData, VerifyOptions } from '../../../pkg/driver/conformance/options.ts';
import {
  isConformant,
  lineOf,
  type Report,
  reportJSON,
  reportJUnit,
  summaryOf,
} from '../../../pkg/driver/conformance/report.ts';
import { RULES } from '../../../pkg/driver/conformance/rules/index.ts';
import { UnusableDriver, Verification, verify, type RuleResult } from '../../../pkg/driver/conformance/verify.ts';
import { messageOf } from '../../../pkg/driver/errno.ts';
import type { DriverAddress } from '../../../pkg/driver/grpc/address.ts';
import { CommandError } from '../command-error.ts';
import { runForExitCode, type Terminal } from '../terminal.ts';
import type { VerifyCommandOptions } from './command.ts';
import { classFrom, secretFrom } from './input.ts';

/**
 * Tries a driver. Resolves with the exit code: 0 when it kept all rules that apply, else 1. SIGINT and SIGTERM end it early, after what
 * the rule of the moment has made was removed; a second one at once.
 */
export async function verifyDriver(options: VerifyCommandOptions, terminal: Terminal): Promise<number> {
  let kept = false;
  const code = await runForExitCode(terminal, async () => {
    requireKnownRules(options.rule);
    const tell = options.output === 'text' ? terminal.out : terminal.err;
    const given = await optionsFrom(options);
    if (Object.keys(given.secretData).length === 0) tell(lackOfSecret(options.secret));
    const report = await reportOn(options, { ...given, report: tell }, terminal);
    const { output } = options;
    terminal.out(
      output === 'json' ? reportJSON(report) : output === 'junit' ? reportJUnit(report) : `\n${summaryOf(report)}`,
    );
    kept = isConformant(report);
  });
  return code === 0 && !kept ? 1 : code;
}

/** A driver that gets no credentials fails in most rules; none of its answers says why. */
function lackOfSecret(files: readonly string[]): string {
  return `note: ${files.length === 0 ? '--secret is not given' : `${files.join(', ')} contains no data`}; the driver gets no credentials`;
}

async function reportOn(
  { rule: names, output }: VerifyCommandOptions,
  options: VerifyOptions,
  { out }: Terminal,
): Promise<Report> {
  const { target: address } = options.address;
  const interrupt = new AbortController();
  const onSignal = (signal: NodeJS.Signals): void => {
    process.off('SIGINT', onSignal);
    process.off('SIGTERM', onSignal);
    interrupt.abort(new Error(signal));
  };
  process.on('SIGINT', onSignal);
  process.on('SIGTERM', onSignal);
  const results: RuleResult[] = [];
  let driver = '';
  let end: string | undefined;
  try {
    using verification = await Verification.begin(options, interrupt.signal);
    driver = verification.capabilities.name;
    if (output === 'text') out(`driver ${driver} at ${address}\n`);
    for await (const result of verify(verification, interrupt.signal, names)) {
      results.push(result);
      if (output === 'text') out(lineOf(result));
    }
    end = verification.end;
  } catch (err) {
    if (err instanceof UnusableDriver) throw new CommandError(`cannot verify the driver at ${address}: ${err.message}`);
    if (!interrupt.signal.aborted) throw err;
  } finally {
    process.off('SIGINT', onSignal);
    process.off('SIGTERM', onSignal);
  }
  return { driver, address, results, isInterrupted: interrupt.signal.aborted, end };
}

function requireKnownRules(names: readonly string[]): void {
  const known = RULES.map(({ name }) => name);
  const unknown = names.find((name) => !known.includes(name));
  if (unknown !== undefined) throw new CommandError(`unknown rule ${unknown}; the rules are ${known.join(', ')}`);
}

async function optionsFrom(given: VerifyCommandOptions): Promise<VerifyOptions> {
  const { address, badClass, badSecret, restartCommand: restart, untaggedVmCommand: untagged } = given;
  await requireFiles(address);
  const secrets = await Promise.all(given.secret.map(secretIn));
  const machineClass = await classIn(given.class);
  const wrongClass = badClass === undefined ? undefined : await classIn(badClass);
  if (isDeepStrictEqual(wrongClass?.providerSpec, machineClass.providerSpec))
    throw new CommandError(
      `${badClass} has the same providerSpec as ${given.class}; --bad-class requires an invalid one`,
    );
  return {
    address,
    machineClass,
    secretData: Object.assign({}, ...secrets) as SecretData, // of those that were read
    ...(wrongClass === undefined ? {} : { badClass: wrongClass }),
    ...(badSecret === undefined ? {} : { badSecretData: await secretIn(badSecret) }),
    ...(restart === undefined ? {} : { restart: (signal: AbortSignal) => runLine(restart, {}, signal) }),
    ...(untagged === undefined
      ? {}
      : {
          makeUntagged: ({ name, namespace, className }, signal) =>
            runLine(untagged, { MACHINE_NAME: name, MACHINE_NAMESPACE: namespace, MACHINE_CLASS: className }, signal),
        }),
    clock: new SystemClock(),
    ruleMs: given.ruleTimeout,
  };
}

async function classIn(file: string): Promise<MachineClass> {
  return classFrom(await textOf(file), file);
}

async function secretIn(file: string): Promise<SecretData> {
  return secretFrom(await textOf(file), file);
}

async function textOf(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (err) {
    throw new CommandError(`cannot read ${file}: ${messageOf(err)}`);
  }
}

/** Throws CommandError unless each file that an address names can be read. */
async function requireFiles({ tls }: DriverAddress): Promise<void> {
  for (const file of tls === undefined ? [] : [tls.ca, tls.cert, tls.key]) await textOf(file);
}

/** Runs a line in a shell, to the end. What it prints goes to stderr: stdout is the report's. */
async function runLine(line: string, env: Readonly<Record<string, string>>, signal: AbortSignal): Promise<void> {
  // Its own group does not get the terminal's SIGINT: what it has started serves until everything is removed.
  const child = spawn('sh', ['-c', line], {
    env: { ...process.env, ...env },
    stdio: ['ignore', process.stderr, process.stderr],
    detached: true,
    signal,
  });
  const [code] = (await once(child, 'exit')) as [number | null]; // as documented
  if (code !== 0) throw new CommandError(`${line} exited with code ${code}`);
}
