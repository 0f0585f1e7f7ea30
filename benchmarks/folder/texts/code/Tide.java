/** The tide at Bremen, as a sum of harmonic terms. */
public final class Tide {
    /** Mean tidal range at the Grosse Weserbruecke in metres. */
    public static final double MEAN_RANGE = 4.1;

    /** Hours between two high waters. */
    public static final double PERIOD_HOURS = 12.42;

    private Tide() {}

    public static double height(double hours) {
        return MEAN_RANGE / 2 * Math.cos(2 * Math.PI * hours / PERIOD_HOURS);
    }
}
