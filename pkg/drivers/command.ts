import { isIP } from 'node:net';

import { Command, InvalidArgumentError, Option } from 'commander';

import { formatDuration, parseDuration } from '../apis/duration.ts';
import { keepAliveDuring } from '../base/clock/keep-alive.ts';
import { messageOf } from '../driver/errno.ts';
import { DriverAddressError, parseDriverAddress, requireProtected } from '../driver/grpc/address.ts';
import type { DriverAddress } from '../driver/grpc/address.ts';
import type { LogLevel } from '../base/log/logger.ts';

export interface CommonDriverOptions {
  readonly address: DriverAddress;
  readonly logLevel: LogLevel;
  /** Where metrics are served; undefined: nowhere. */
  readonly metrics?: { readonly address: string; readonly port: number };
}

/** A driver's command with the flags that all have. Unknown flags and surplus arguments are refused. */
export function driverCommand(name: string, description: string): Command {
  return new Command(name)
    .description(description)
    .requiredOption(
      '--address <address>',
      'address on which to serve the driver contract: unix:///path/to/socket, dns:///0.0.0.0:port?ca=FILE&cert=FILE&key=FILE with ' +
        'mutual TLS, or dns:///127.0.0.1:port?insecure=true, which any process on this host can call',
      parseAddress,
    )
    .option(
      '--metrics <ip:port>',
      'address on which to serve /metrics, /healthz and /readyz over plain HTTP (default: not served)',
      ipAndPort,
    )
    .addOption(
      new Option('--log-level <level>', 'minimum level of log lines')
        .choices(['error', 'warn', 'info', 'debug', 'silent'])
        .default('info'),
    )
    .allowExcessArguments(false)
    .showSuggestionAfterError()
    .showHelpAfterError('(see --help for usage)')
    .configureHelp({ helpWidth: 110 });
}

/** A flag that takes a Go duration, with a default that reads like one. */
export function durationOption(flags: string, description: string, defaultMs: number): Option {
  return new Option(flags, description).argParser(durationMs).default(defaultMs, formatDuration(defaultMs));
}

/** Parses a Go duration such as 200ms or 1m30s into milliseconds. For commander. */
export function durationMs(text: string): number {
  const ms = parseDuration(text);
  if (ms === undefined || ms < 0) throw new InvalidArgumentError('Expected a duration such as 200ms, 5s or 1m30s.');
  return ms;
}

/** Parses a Go duration longer than 0 into milliseconds. For commander. */
export function positiveDurationMs(text: string): number {
  const ms = durationMs(text);
  if (ms === 0) throw new InvalidArgumentError('Expected a duration longer than 0, such as 5s or 1m30s.');
  return ms;
}

/** Parses a whole number of at least 0. For commander. */
export function count(text: string): number {
  if (!/^\d+$/.test(text)) throw new InvalidArgumentError('Expected a whole number of at least 0.');
  return Number(text);
}

/** Parses a whole number of at least 1. For commander. */
export function atLeastOne(text: string): number {
  if (!/^0*[1-9]\d*$/.test(text)) throw new InvalidArgumentError('Expected a whole number of at least 1.');
  return Number(text);
}

/** Parses `unix:///path`, for what is served without authentication: every user of the host could call a port. For commander. */
export function socketPath(text: string): string {
  const path = text.slice('unix://'.length);
  if (!text.startsWith('unix:///') || path.length < 2) throw new InvalidArgumentError('Expected unix:///path.');
  return path;
}

/** Parses `127.0.0.1:9090` or `[::]:9090`. For commander. */
export function ipAndPort(text: string): { readonly address: string; readonly port: number } {
  const [, six, four, digits] = /^(?:\[([0-9a-f:.]+)\]|([0-9.]+)):([0-9]{1,5})$/i.exec(text) ?? [];
  const address = six ?? four ?? '';
  const port = Number(digits);
  if (isIP(address) === 0 || !(port <= 65_535))
    throw new InvalidArgumentError('Expected IP:PORT, such as 0.0.0.0:9090.');
  return { address, port };
}

/** Runs a command. What it throws is told in one line, without a stack, and ends the process with exit code 1. */
export async function runCommand(command: Command, argv: readonly string[]): Promise<void> {
  try {
    await keepAliveDuring(() => command.parseAsync(argv, { from: 'user' }));
  } catch (err) {
    process.stderr.write(`error: ${messageOf(err)}\n`);
    process.exitCode = 1;
  }
}

/** Resolves at the first SIGTERM or SIGINT; a second one ends the process at once. */
export async function untilTerminated(): Promise<NodeJS.Signals> {
  return await new Promise((resolve) => {
    const onSignal = (signal: NodeJS.Signals): void => {
      process.off('SIGTERM', onSignal);
      process.off('SIGINT', onSignal);
      resolve(signal);
    };
    process.on('SIGTERM', onSignal);
    process.on('SIGINT', onSignal);
  });
}

function parseAddress(text: string): DriverAddress {
  try {
    const address = parseDriverAddress(text);
    requireProtected(address);
    return address;
  } catch (err) {
    if (err instanceof DriverAddressError) throw new InvalidArgumentError(err.message);
    throw err;
  }
}
