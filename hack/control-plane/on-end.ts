const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

/**
 * Calls `endNow` once when this process is told to end, before the signal goes its way, and when it ends by itself, such as of an error that
 * nobody caught: no `await using` is disposed of then. `endNow` only sends signals and does not wait. Disposing stops listening. Where nobody
 * else listens for the signal, the process ends by it.
 */
export function onEnd(endNow: () => void): Disposable {
  const forget = (): void => {
    process.off('exit', onExit);
    for (const signal of SIGNALS) process.off(signal, onSignal);
  };
  const onExit = (): void => {
    forget();
    endNow();
  };
  const onSignal = (signal: NodeJS.Signals): void => {
    onExit();
    if (process.listenerCount(signal) === 0) process.kill(process.pid, signal);
  };
  process.once('exit', onExit);
  for (const signal of SIGNALS) process.prependOnceListener(signal, onSignal);
  return { [Symbol.dispose]: forget };
}
