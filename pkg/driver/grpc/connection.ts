import { ChannelCredentials, connectivityState } from '@grpc/grpc-js';
import { createChannel, waitForChannelReady, type Channel, type ChannelOptions } from 'nice-grpc';

import type { Logger } from '../../base/log/logger.ts';
import type { DriverAddress } from './address.ts';
import { ReloadedChannelCredentials } from './reloaded-channel-credentials.ts';

/** A driver in the same pod restarts within seconds; gRPC's own back-off would wait up to two minutes. */
const RECONNECT: ChannelOptions = {
  'grpc.initial_reconnect_backoff_ms': 100,
  'grpc.max_reconnect_backoff_ms': 1_000,
};

/**
 * Finds a dead peer behind a network. Not on sockets, where the kernel tells: gRPC servers of other languages end
 * connections that ping more often than they allow.
 */
const KEEPALIVE: ChannelOptions = { 'grpc.keepalive_time_ms': 10_000, 'grpc.keepalive_timeout_ms': 10_000 };

/** One gRPC channel, which tells when its connection was lost. */
export class DriverConnection {
  readonly channel: Channel;
  readonly #onLost: () => void;
  #watching = false;

  /** `onLost` is called each time that a connection that was watched is no longer up. */
  constructor(address: DriverAddress, log: Logger, onLost: () => void) {
    const { tls } = address;
    const credentials =
      tls === undefined ? ChannelCredentials.createInsecure() : new ReloadedChannelCredentials(tls, log);
    this.channel = createChannel(address.target, credentials, {
      ...RECONNECT,
      ...(address.path === undefined ? KEEPALIVE : {}),
      ...(tls?.serverName === undefined ? {} : { 'grpc.ssl_target_name_override': tls.serverName }),
      // What is said in plain text stays on this host, whatever its environment says of proxies.
      'grpc.enable_http_proxy': 0,
      'grpc.max_receive_message_length': 64 * 1024 * 1024,
    });
    this.#onLost = onLost;
  }

  /** Resolves when the connection is up, or `patienceMs` have passed. */
  async settle(patienceMs: number): Promise<void> {
    // Compared by gRPC with the host's own clock, so it must not come from ours, which follows the API server's.
    // oxlint-disable-next-line no-restricted-globals
    await waitForChannelReady(this.channel, new Date(new Date().getTime() + patienceMs)).catch(() => undefined);
  }

  /** Watches the connection that is up now, until it is lost. */
  watch(): void {
    if (this.#watching) return;
    if (this.channel.getConnectivityState(false) !== connectivityState.READY) return this.#onLost();
    this.#watching = true;
    this.channel.watchConnectivityState(connectivityState.READY, Infinity, () => {
      this.#watching = false;
      this.#onLost();
    });
  }

  close(): void {
    this.channel.close();
  }
}
