import { ServerCredentials } from '@grpc/grpc-js';

import type { Clock } from '../base/clock/clock.ts';
import type { Logger } from '../base/log/logger.ts';
import { ReloadedServerCredentials, TlsFileError } from '../driver/grpc/reloaded-server-credentials.ts';
import type { AutoscalerConfig } from '../operator/config/autoscaler.ts';
import { CannotStartError } from '../operator/process/lifecycle.ts';
import { type ClientAdmission, GrpcServer, type GrpcServerOptions, type RpcHandler } from './grpc-server.ts';

export type OpenPort = Pick<GrpcServer, 'address' | 'drop' | 'close'>;
/** Opens it: simulations have no sockets. */
export type ListenForAutoscalers = (options: GrpcServerOptions) => Promise<OpenPort>;

export const overGrpc: ListenForAutoscalers = (options) => GrpcServer.listen(options);

export interface PortOptions {
  readonly config: AutoscalerConfig;
  readonly listen: ListenForAutoscalers;
  readonly answer: RpcHandler;
  /** Undefined: every client stays. */
  readonly admission?: ClientAdmission;
  readonly clock: Clock;
  readonly log: Logger;
}

/** The port for autoscalers as it is open, with its certificate. */
export class AutoscalerPort {
  readonly #server: OpenPort;
  readonly #credentials: ReloadedServerCredentials | undefined;

  private constructor(server: OpenPort, credentials: ReloadedServerCredentials | undefined) {
    this.#server = server;
    this.#credentials = credentials;
  }

  /** Rejects with CannotStartError. */
  static async open({ config, listen, answer, admission, clock, log }: PortOptions): Promise<AutoscalerPort> {
    let opened: OpenPort | undefined;
    let credentials: ReloadedServerCredentials | undefined;
    try {
      const { tls } = config;
      const port = "the autoscaler's port";
      const onAuthority = (): void => opened?.drop();
      credentials =
        tls &&
        (await ReloadedServerCredentials.load({ files: tls, port, rejectsStrangers: false, clock, log, onAuthority }));
      opened = await listen({
        listen: config.listen,
        credentials: credentials ?? ServerCredentials.createInsecure(),
        answer,
        clock,
        ...(admission && { admission }),
      });
    } catch (err) {
      credentials?.stop();
      const flag = err instanceof TlsFileError ? '--autoscaler-tls-*' : '--autoscaler-grpc-address';
      throw new CannotStartError(`${flag}: ${err instanceof Error ? err.message : String(err)}`, { cause: err });
    }
    log.info({ listen: opened.address }, 'listening for autoscalers');
    return new AutoscalerPort(opened, credentials);
  }

  /** Tells clients to connect anew: all of them, or those that are meant. */
  drop(...whom: Parameters<OpenPort['drop']>): void {
    this.#server.drop(...whom);
  }

  async close(): Promise<void> {
    this.#credentials?.stop();
    await this.#server.close();
  }
}
