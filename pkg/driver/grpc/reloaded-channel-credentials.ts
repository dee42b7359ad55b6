import { readFileSync } from 'node:fs';

import { ChannelCredentials } from '@grpc/grpc-js';

import type { Logger } from '../../base/log/logger.ts';
import type { TlsFiles } from './address.ts';

type ConnectorArguments = Parameters<ChannelCredentials['_createSecureConnector']>;
type SecureConnector = ReturnType<ChannelCredentials['_createSecureConnector']>;

/**
 * A client's certificate and the authority of its server, from files that may be replaced at any time: each connection is made with what is
 * there then. With what is broken none is made: the last files that could be used count, and it is told.
 */
export class ReloadedChannelCredentials extends ChannelCredentials {
  readonly #files: TlsFiles;
  readonly #log: Logger;
  #last: ChannelCredentials;
  /** What was told last, so that a driver that is down does not have it told each second. */
  #reported = '';

  /** Throws when the files cannot be used. */
  constructor(files: TlsFiles, log: Logger) {
    super();
    this.#files = files;
    this.#log = log;
    this.#last = read(files);
  }

  override _isSecure(): boolean {
    return true;
  }

  override _equals(other: ChannelCredentials): boolean {
    return this === other;
  }

  override _createSecureConnector(...of: ConnectorArguments): SecureConnector {
    const first = this.#last._createSecureConnector(...of);
    return {
      connect: (socket) =>
        this.#present()
          ._createSecureConnector(...of)
          .connect(socket),
      waitForReady: () => first.waitForReady(),
      getCallCredentials: () => first.getCallCredentials(),
      destroy: () => first.destroy(),
    };
  }

  #present(): ChannelCredentials {
    try {
      this.#last = read(this.#files);
      this.#reported = '';
    } catch (err) {
      const why = (err as Error).message; // of Node, about a file or what is in it
      if (why !== this.#reported)
        this.#log.error({ err: why }, 'could not load new certificates for the driver; keeping the old ones');
      this.#reported = why;
    }
    return this.#last;
  }
}

function read({ ca, key, cert }: TlsFiles): ChannelCredentials {
  return ChannelCredentials.createSsl(readFileSync(ca), readFileSync(key), readFileSync(cert));
}
