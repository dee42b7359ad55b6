import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { ChannelCredentials, ServerCredentials } from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type Channel, createChannel, createClient, Status } from 'nice-grpc';
import { parse } from 'yaml';

import { parseManifests } from '../../hack/control-plane/apply.ts';
import { createPki, issueClient, type PkiFiles, readCredential } from '../../hack/control-plane/pki.ts';
import { answering, type Unavailable } from '../../pkg/autoscaler/answer.ts';
import { CloudProviderDefinition } from '../../pkg/autoscaler/gen/clusterautoscaler/cloudprovider/v1/externalgrpc/cloud_provider.ts';
import { GrpcServer } from '../../pkg/autoscaler/grpc-server.ts';
import { autoscalerMetrics } from '../../pkg/autoscaler/metrics.ts';
import type { Rpcs } from '../../pkg/autoscaler/rpcs.ts';
import { ReloadedServerCredentials, TlsFileError } from '../../pkg/driver/grpc/reloaded-server-credentials.ts';
import { SystemClock } from '../../pkg/base/clock/system-clock.ts';
import type { ListenAddress } from '../../pkg/operator/config/autoscaler.ts';
import { silentLogger, type LogFields, type Logger } from '../../pkg/base/log/logger.ts';
import { createRegistry } from '../../pkg/base/metrics/registry.ts';
import { eventually } from '../expect/eventually.ts';
import { FakeClock } from '../fakes/fake-clock.ts';

const LOOPBACK: ListenAddress = { kind: 'tcp', host: '127.0.0.1', port: 0 };
const clock = new SystemClock();

let directory: string;
let pki: PkiFiles;
let other: PkiFiles;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'autoscaler-'));
  pki = await createPki(join(directory, 'pki'), ['127.0.0.1', 'localhost']);
  other = await createPki(join(directory, 'other'), ['127.0.0.1', 'localhost']);
});

afterAll(() => rmSync(directory, { recursive: true, force: true }));

const AUTOSCALER = join(import.meta.dirname, '../../deploy/autoscaler');
const CERTIFICATES = join(AUTOSCALER, 'certificates.sh');
const SERVICE = join(AUTOSCALER, 'service.yaml');

interface Service {
  readonly metadata: { readonly name: string; readonly namespace: string };
  readonly spec: { readonly ports: readonly [{ readonly port: number }] };
}

/** What the sample manifests give to the cluster-autoscaler. */
function cloudConfig(): { readonly address: string } {
  const manifests = parseManifests(readFileSync(join(AUTOSCALER, 'cluster-autoscaler.yaml'), 'utf8'));
  const map = manifests.find(({ kind }) => kind === 'ConfigMap');
  return parse((map as unknown as { data: { 'config.yaml': string } }).data['config.yaml']) as { address: string };
}

/** What the server was asked, and what it wrote into the log. */
class Served implements AsyncDisposable {
  readonly asked: string[] = [];
  /** Where calls came from. */
  readonly refreshed: string[] = [];
  readonly lines: (LogFields & { message: string })[] = [];
  readonly registry = createRegistry();
  unavailable: Unavailable | undefined;
  grown: (signal: AbortSignal, leftMs: number) => Promise<void> = () => Promise.resolve();
  credentials: ReloadedServerCredentials | undefined;
  server!: GrpcServer;
  readonly #channels: Channel[] = [];

  static async start(
    listen: ListenAddress = LOOPBACK,
    tls?: { cert: string; key: string; clientCA: string },
  ): Promise<Served> {
    const served = new Served();
    const log = served.#logger();
    const onAuthority = (): void => served.server.drop();
    if (tls !== undefined)
      served.credentials = await ReloadedServerCredentials.load({
        files: tls,
        port: "the autoscaler's port",
        rejectsStrangers: false,
        clock,
        log,
        onAuthority,
      });
    const answer = answering({
      rpcs: served.#rpcs(),
      clientNames: tls && ['cluster-autoscaler'],
      unavailable: () => served.unavailable,
      drop: () => served.server.drop(),
      roleFile: 'deploy/rbac/control-manager.yaml',
      metrics: autoscalerMetrics(served.registry, () => []),
      clock,
      log,
    });
    const credentials = served.credentials ?? ServerCredentials.createInsecure();
    served.server = await GrpcServer.listen({ listen, credentials, answer, clock });
    return served;
  }

  /** As the cluster-autoscaler calls it. */
  client(credentials = ChannelCredentials.createInsecure(), serverName?: string) {
    const options = serverName === undefined ? {} : { 'grpc.ssl_target_name_override': serverName };
    const channel = createChannel(this.server.address, credentials, options);
    this.#channels.push(channel);
    return createClient(CloudProviderDefinition, channel);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const channel of this.#channels) channel.close();
    this.credentials?.stop();
    await this.server.close();
  }

  #rpcs(): Rpcs {
    const rpcs: Partial<Rpcs> = {
      nodeGroups: () => ({ nodeGroups: [{ id: 'pool', minSize: 0, maxSize: 5, debug: '' }] }),
      refresh: (_request, { peer }) => {
        this.refreshed.push(peer);
        return {};
      },
      nodeGroupIncreaseSize: async ({ id, delta }, call) => {
        this.asked.push(`${call.peer} grows ${id} by ${delta}`);
        await this.grown(call.signal, call.leftMs());
        call.report('size 1 -> 2');
        return {};
      },
      nodeGroupTargetSize: () => {
        throw new TypeError('cannot read size');
      },
    };
    return rpcs as Rpcs; // the others are not called
  }

  #logger(): Logger {
    const note = (fields: LogFields, message: string): void => void this.lines.push({ ...fields, message });
    return { ...silentLogger, info: note, warn: note, error: note };
  }
}

async function clientOf(
  authority: PkiFiles,
  user: string,
  { serverCa = pki.ca, lifetimeMs }: { serverCa?: string; lifetimeMs?: number } = {},
): Promise<ChannelCredentials> {
  const subject = { user, ...(lifetimeMs === undefined ? {} : { lifetimeMs }) };
  const { certificate, key } = await issueClient(readCredential(authority.ca, authority.caKey), subject);
  return ChannelCredentials.createSsl(
    Buffer.from(readCredential(serverCa, pki.caKey).certificate),
    Buffer.from(key),
    Buffer.from(certificate),
  );
}

/** The files of a server, in a place where they may be replaced. */
function filesIn(name: string, from = pki): { cert: string; key: string; clientCA: string } {
  const files = {
    cert: join(directory, `${name}.crt`),
    key: join(directory, `${name}.key`),
    clientCA: join(directory, `${name}-ca.crt`),
  };
  copyFileSync(from.server, files.cert);
  copyFileSync(from.serverKey, files.key);
  copyFileSync(pki.ca, files.clientCA);
  return files;
}

describe("the autoscaler's port with TLS", () => {
  test('answers a client of the name that may call, and logs who changed what', async () => {
    await using served = await Served.start(LOOPBACK, filesIn('named'));
    const client = served.client(await clientOf(pki, 'cluster-autoscaler'));

    await client.nodeGroupIncreaseSize({ id: 'pool', delta: 1 });

    expect(served.asked).toEqual(['cluster-autoscaler grows pool by 1']);
    expect(served.lines).toEqual([
      expect.objectContaining({
        message: 'completed an autoscaler call',
        peer: 'cluster-autoscaler',
        method: 'nodeGroupIncreaseSize',
        group: 'pool',
        delta: 1,
        code: 'OK',
        outcome: 'size 1 -> 2',
      }),
    ]);
    expect(await served.registry.metrics()).toContain(
      'machinist_autoscaler_request_duration_seconds_count{method="nodeGroupIncreaseSize",code="OK"} 1',
    );
  });

  test.each([
    {
      who: 'a client without a certificate',
      credentials: async () => ChannelCredentials.createSsl(Buffer.from(readCredential(pki.ca, pki.caKey).certificate)),
      code: Status.UNAUTHENTICATED,
      says: 'set cert, key and cacert in the cloud-config',
    },
    {
      who: 'a certificate of another authority',
      credentials: () => clientOf(other, 'cluster-autoscaler'),
      code: Status.UNAUTHENTICATED,
      says: 'no valid client certificate signed',
    },
    {
      who: 'a certificate that has expired',
      credentials: () => clientOf(pki, 'cluster-autoscaler', { lifetimeMs: -1_000 }),
      code: Status.UNAUTHENTICATED,
      says: 'signed by --autoscaler-tls-client-ca:',
    },
    {
      who: 'a certificate of another name',
      credentials: () => clientOf(pki, 'somebody'),
      code: Status.PERMISSION_DENIED,
      says: 'the client\'s certificate is for "somebody", and only "cluster-autoscaler" may call',
    },
  ])('refuses $who before anything is done', async ({ credentials, code, says }) => {
    await using served = await Served.start(LOOPBACK, filesIn('refused'));
    const client = served.client(await credentials());

    const err = await client.nodeGroupIncreaseSize({ id: 'pool', delta: 1 }).catch((reason: unknown) => reason);

    expect(err).toMatchObject({ code, details: expect.stringContaining(says) });
    expect(served.asked).toEqual([]);
    expect(served.lines).toEqual([
      expect.objectContaining({ message: 'refused an autoscaler call', code: Status[code] }),
    ]);
  });

  test('takes new files for new connections, and goes on with the old ones when the new are broken', async () => {
    const files = filesIn('reloaded');
    await using served = await Served.start(LOOPBACK, files);
    const believing = async (ca: PkiFiles) =>
      served.client(await clientOf(pki, 'cluster-autoscaler', { serverCa: ca.ca }));
    await (await believing(pki)).refresh({});

    writeFileSync(files.cert, 'no certificate');
    await served.credentials?.reload();
    await (await believing(pki)).refresh({});
    copyFileSync(other.server, files.cert);
    await served.credentials?.reload();
    await (await believing(pki)).refresh({});
    copyFileSync(other.serverKey, files.key);
    await served.credentials?.reload();

    await (await believing(other)).refresh({});
    expect(served.lines.map(({ message, err }) => [message, err])).toEqual([
      [
        expect.stringContaining('keeping the old one'),
        expect.stringContaining(`${files.cert} contains no certificate in PEM`),
      ],
      [expect.stringContaining('keeping the old one'), `${files.key} does not match ${files.cert}`],
      ["loaded a new certificate for the autoscaler's port", undefined],
    ]);
  });

  test('looks for new files by itself, again and again', async () => {
    const files = filesIn('watched');
    const fake = new FakeClock();
    let taken = 0;
    const onAuthority = (): void => void (taken += 1);
    const credentials = await ReloadedServerCredentials.load({
      files,
      port: "the autoscaler's port",
      rejectsStrangers: false,
      clock: fake,
      log: silentLogger,
      onAuthority,
    });

    for (const [i, ca] of [other.ca, pki.ca].entries()) {
      copyFileSync(ca, files.clientCA);
      await eventually(() => {
        fake.advance(10_000);
        expect(taken).toBe(i + 1);
      });
    }
    credentials.stop();
  });

  test('ends connections that a former authority let in', async () => {
    const files = filesIn('authority');
    await using served = await Served.start(LOOPBACK, files);
    const client = served.client(await clientOf(pki, 'cluster-autoscaler'));
    await client.refresh({});
    await served.credentials?.reload();
    await client.refresh({});
    expect(served.refreshed).toHaveLength(2);

    copyFileSync(other.ca, files.clientCA);
    await served.credentials?.reload();

    const refused = { code: Status.UNAUTHENTICATED };
    await eventually(() => expect(client.refresh({})).rejects.toMatchObject(refused));
  });

  test('takes the certificates that the documentation makes, also when they are made again', async () => {
    const folder = join(directory, 'documented');
    const make = (): unknown => execFileSync('sh', [CERTIFICATES, folder], { stdio: 'pipe' });
    const read = (file: string): Buffer => readFileSync(join(folder, 'cluster-autoscaler', file));
    const connect = (served: Served, serverName: string) =>
      served.client(ChannelCredentials.createSsl(read('ca.crt'), read('tls.key'), read('tls.crt')), serverName);
    make();
    const own = (file: string): string => join(folder, 'machinist', file);
    await using served = await Served.start(LOOPBACK, {
      cert: own('tls.crt'),
      key: own('tls.key'),
      clientCA: own('ca.crt'),
    });
    const manifests = parseManifests(readFileSync(SERVICE, 'utf8'));
    const { metadata, spec } = manifests.find(({ kind }) => kind === 'Service') as unknown as Service;
    const host = `${metadata.name}.${metadata.namespace}.svc`;
    const before = connect(served, host);
    await before.refresh({});
    const first = read('tls.crt');

    make();
    await served.credentials?.reload();

    expect(read('tls.crt')).not.toEqual(first);
    await before.refresh({});
    await connect(served, host).refresh({});
    await expect(connect(served, 'another.machinist.svc').refresh({})).rejects.toMatchObject({
      code: Status.UNAVAILABLE,
    });
    expect(cloudConfig().address).toBe(`${host}:${spec.ports[0].port}`);
  });

  test('does not start with files that cannot be used', async () => {
    const files = filesIn('unusable');
    const load = (changed: Partial<typeof files>) =>
      ReloadedServerCredentials.load({
        files: { ...files, ...changed },
        port: "the autoscaler's port",
        rejectsStrangers: false,
        clock,
        log: silentLogger,
        onAuthority: () => undefined,
      });

    await expect(load({ key: other.serverKey })).rejects.toThrow(TlsFileError);
    await expect(load({ cert: join(directory, 'nowhere') })).rejects.toThrow('cannot be read');
    await expect(load({ clientCA: pki.serverKey })).rejects.toThrow('contains no certificate in PEM');
  });
});

describe("the autoscaler's port", () => {
  test('on a socket is open to its owner only', async () => {
    const path = join(directory, 's');
    await using served = await Served.start({ kind: 'unix', path });

    expect((await served.client().nodeGroups({})).nodeGroups).toMatchObject([{ id: 'pool' }]);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
  });

  test('in a process that does not lead says so, and lets the client connect anew', async () => {
    await using served = await Served.start();
    const client = served.client();
    await client.refresh({});
    served.unavailable = { reason: 'this process does not lead', isElsewhere: true };

    await expect(client.nodeGroups({})).rejects.toMatchObject({
      code: Status.UNAVAILABLE,
      details: 'this process does not lead',
    });
    served.unavailable = undefined;
    await eventually(async () => {
      await client.refresh({});
      expect(new Set(served.refreshed).size).toBe(2); // from two ports
    });
  });

  test('in an outage changes nothing, and still tells of the groups', async () => {
    await using served = await Served.start();
    served.unavailable = { reason: 'API server unreachable', isElsewhere: false };
    const client = served.client();

    const refused = { code: Status.UNAVAILABLE, details: 'API server unreachable' };
    await expect(client.refresh({})).rejects.toMatchObject(refused);
    await expect(client.nodeGroupIncreaseSize({ id: 'pool', delta: 1 })).rejects.toMatchObject(refused);
    expect((await client.nodeGroups({})).nodeGroups).toHaveLength(1);
    expect(served.asked).toEqual([]);
  });

  test('says of a fault of its own what it was, and logs it', async () => {
    await using served = await Served.start();

    await expect(served.client().nodeGroupTargetSize({ id: 'pool' })).rejects.toMatchObject({
      code: Status.INTERNAL,
      details: 'cannot read size',
    });
    expect(served.lines).toEqual([expect.objectContaining({ message: 'failed to answer an autoscaler' })]);
  });

  test('tells methods how long the client waits, and when it has gone', async () => {
    await using served = await Served.start();
    const gone = Promise.withResolvers<number>();
    const started = Promise.withResolvers<void>();
    served.grown = (signal, leftMs) => {
      started.resolve();
      return new Promise((resolve) => {
        signal.addEventListener('abort', () => {
          gone.resolve(leftMs);
          resolve();
        });
      });
    };
    const giveUp = new AbortController();

    const call = served.client().nodeGroupIncreaseSize({ id: 'pool', delta: 1 }, { signal: giveUp.signal });
    const ended = call.catch((err: unknown) => err);
    await started.promise;
    giveUp.abort();

    expect(await ended).toMatchObject({ name: 'AbortError' });
    expect(await gone.promise).toBe(Infinity);
  });

  test('takes nobody who was answered for one who has gone', async () => {
    await using served = await Served.start();
    const client = served.client();
    const signals: AbortSignal[] = [];
    served.grown = (signal) => {
      signals.push(signal);
      return Promise.resolve();
    };

    for (let i = 0; i < 3; i++) await client.nodeGroupIncreaseSize({ id: 'pool', delta: 1 });

    expect(signals.map(({ aborted }) => aborted)).toEqual([false, false, false]);
  });
});
