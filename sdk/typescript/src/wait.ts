// How long to wait before the next attempt, and waiting that can be ended.

/** How often something is tried, and how long the waits in between are. They double, are never longer than `maxMs`, and vary by a half. */
export interface RetryPolicy {
  /** Attempts in all; of a stream, those in a row that brought nothing. */
  attempts: number;
  firstMs: number;
  maxMs: number;
}

/** The wait before attempt `failures` + 1. */
export function backoffMs(policy: RetryPolicy, failures: number, random: () => number = Math.random): number {
  // The exponent is bounded, too: doubling for ever gives infinity, and that times zero is not a number.
  const whole = Math.min(policy.maxMs, policy.firstMs * 2 ** Math.min(failures - 1, 30));
  return Math.round(whole * (0.5 + random() / 2));
}

/** Waits. Fails with the signal's reason as soon as that is aborted. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason as Error);
    const wake = (): void => {
      signal?.removeEventListener("abort", stop);
      resolve();
    };
    const timer = setTimeout(wake, ms);
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    signal?.addEventListener("abort", stop, { once: true });
  });
}
