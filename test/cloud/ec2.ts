import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';

import { freePort } from '../../hack/control-plane/ports.ts';
import { MOTO_VARIABLE } from '../../hack/providers/programs.ts';
import { eventually } from '../expect/eventually.ts';

const VERSION = '2016-11-15';
export const REGION = 'eu-west-1';
/** Name of the key pair and of the instance profile that exist from the beginning. */
export const NODES = 'nodes';

/** An EC2 instance that has not been terminated. */
export interface Instance {
  readonly id: string;
  /** Its tag `Name`. */
  readonly name: string;
  readonly type: string;
}

/** An EC2 API of its own, played by moto's server. */
export class Ec2 implements AsyncDisposable {
  readonly url: string;
  readonly #child: ChildProcess;

  private constructor(url: string, child: ChildProcess) {
    this.url = url;
    this.#child = child;
  }

  static async start(): Promise<Ec2> {
    const port = await freePort();
    const program = path.join(import.meta.dirname, 'ec2.py');
    const flags = ['-H', '127.0.0.1', '-p', String(port)];
    const child = spawn(process.env[MOTO_VARIABLE] ?? 'python3', [program, ...flags], { stdio: 'ignore' });
    const ec2 = new Ec2(`http://127.0.0.1:${port}`, child);
    await eventually(async () => (await ec2.call('DescribeImages')).includes('<imageId>'), { timeoutMs: 120_000 });
    await ec2.call('CreateKeyPair', { KeyName: NODES });
    const profile = { InstanceProfileName: NODES, Version: '2010-05-08' };
    await ec2.call('CreateInstanceProfile', profile, authorizationFor('iam'));
    return ec2;
  }

  /** The XML of a response. Throws Error for one that failed. */
  async call(
    action: string,
    parameters: Readonly<Record<string, string>> = {},
    authorization = authorizationFor('ec2'),
  ): Promise<string> {
    const query = new URLSearchParams({ Action: action, Version: VERSION, ...parameters });
    const response = await fetch(`${this.url}/?${query.toString()}`, { headers: { authorization } });
    const text = await response.text();
    if (!response.ok) throw new Error(`${action}: ${text}`);
    return text;
  }

  /** The first value of an element. */
  async first(action: string, element: string): Promise<string> {
    const [, value = ''] = new RegExp(`<${element}>([^<]+)</${element}>`).exec(await this.call(action)) ?? [];
    return value;
  }

  async instances(): Promise<readonly Instance[]> {
    const text = await this.call('DescribeInstances');
    return text
      .split('<instancesSet>')
      .slice(1)
      .filter((one) => !/<instanceState>\s*<code>\d+<\/code>\s*<name>(?:terminated|shutting-down)</.test(one))
      .map((one) => ({
        id: /<instanceId>([^<]+)/.exec(one)?.[1] ?? '',
        name: /<key>Name<\/key>\s*<value>([^<]*)/.exec(one)?.[1] ?? '',
        type: /<instanceType>([^<]+)/.exec(one)?.[1] ?? '',
      }));
  }

  /** What an account still pays for, besides instances. */
  async leftovers(): Promise<readonly string[]> {
    const volumes = (await this.call('DescribeVolumes')).match(/<volumeId>[^<]+/g) ?? [];
    const interfaces = (await this.call('DescribeNetworkInterfaces')).match(/<networkInterfaceId>[^<]+/g) ?? [];
    return [...volumes, ...interfaces];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await ended;
  }
}

/** moto takes region and service from it, and checks no signature. */
function authorizationFor(service: string): string {
  const scope = `20260101/${REGION}/${service}/aws4_request`;
  return `AWS4-HMAC-SHA256 Credential=testing/${scope}, SignedHeaders=host, Signature=none`;
}
