//! Lines with the least and the most of several runs, as SVG.

use plotters::chart::{ChartBuilder, ChartContext};
use plotters::coord::Shift;
use plotters::coord::cartesian::Cartesian2d;
use plotters::coord::combinators::BindKeyPoints;
use plotters::coord::ranged1d::{Ranged, ValueFormatter};
use plotters::prelude::{
    Circle, DrawingArea, DrawingAreaErrorKind, ErrorBar, IntoDrawingArea, IntoLogRange, LineSeries,
    PathElement, RGBColor, SVGBackend, Text,
};
use plotters::style::Color;
use plotters::style::colors::{BLACK, WHITE};
use std::ops::Range;

/// Width and height in pixels.
const SIZE: (u32, u32) = (640, 340);
/// Of it the names of the lines, at the right; and the height of one.
const LEGEND: i32 = 150;
const LEGEND_ROW: i32 = 20;
/// Told from each other also by those who do not see all colours (Okabe and Ito).
pub(super) const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(213, 94, 0),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(90, 90, 90),
];
/// More marks than this have no room at the first axis.
const MARKS_MAX: usize = 8;
/// A figure of 0 has no place on an axis of powers; it is drawn here.
const LEAST: f64 = 1e-3;

/// An axis of powers: everything that is measured here spans several of them.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Axis {
    /// What is along it, and its unit.
    pub name: String,
}

/// One place of a line: a figure of several runs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Place {
    /// Along the first axis.
    pub x: f64,
    /// The figure in the middle.
    pub median: f64,
    /// The least.
    pub min: f64,
    /// The most.
    pub max: f64,
}

/// What belongs together.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Line {
    /// What it is.
    pub name: String,
    /// From left to right.
    pub places: Vec<Place>,
}

/// Lines over two axes.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Plot {
    /// What it shows.
    pub title: String,
    /// From left to right.
    pub x: Axis,
    /// From below.
    pub y: Axis,
    /// The lines.
    pub lines: Vec<Line>,
}

pub(super) type Svg<'a> = DrawingArea<SVGBackend<'a>, Shift>;
pub(super) type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

impl Plot {
    /// As SVG.
    pub fn svg(&self) -> String {
        svg(|area| self.draw(area))
    }

    /// The least and the most of something, with some room.
    fn range(&self, of: impl Fn(&Place) -> [f64; 2]) -> Range<f64> {
        let places = self.lines.iter().flat_map(|line| &line.places);
        let all = places.flat_map(of).map(|figure| figure.max(LEAST));
        let (least, most) = all.fold((f64::MAX, f64::MIN), |(least, most), figure| {
            (least.min(figure), most.max(figure))
        });
        match least <= most {
            true => least / 1.3..most * 1.3,
            false => LEAST..1.0,
        }
    }

    fn draw(&self, area: &Svg<'_>) -> Drawn {
        area.fill(&WHITE)?;
        let (area, legend) = with_legend(area);
        let x = self.range(|place| [place.x, place.x]);
        let y = self.range(|place| [place.min, place.max]);
        let mut chart = ChartBuilder::on(&area)
            .caption(&self.title, ("sans-serif", 16))
            .margin(8)
            .x_label_area_size(36)
            .y_label_area_size(64)
            .build_cartesian_2d(
                x.clone().log_scale().with_key_points(self.marks(&x)),
                y.clone().log_scale().with_key_points(marks(&y)),
            )?;
        mesh(&mut chart, (&self.x, &self.y))?;
        for (line, colour) in self.lines.iter().zip(COLOURS.iter().cycle()) {
            let at = |place: &Place| (place.x, place.median.max(LEAST));
            let drawn = LineSeries::new(line.places.iter().map(at), colour.stroke_width(2));
            chart.draw_series(drawn)?;
            chart.draw_series(line.places.iter().map(|place| {
                let (min, max) = (place.min.max(LEAST), place.max.max(LEAST));
                let (x, median) = at(place);
                ErrorBar::new_vertical(x, min, median, max, colour.filled(), 8)
            }))?;
            let dots = line.places.iter();
            chart.draw_series(dots.map(|place| Circle::new(at(place), 3, colour.filled())))?;
        }
        let names = self.lines.iter().map(|line| &*line.name);
        key(&legend, names.zip(COLOURS.iter().copied().cycle()))?;
        area.present()
    }

    /// What is marked at the first axis: where places are, if those are few.
    fn marks(&self, x: &Range<f64>) -> Vec<f64> {
        let places = self.lines.iter().flat_map(|line| &line.places);
        let mut at: Vec<f64> = places.map(|place| place.x.max(LEAST)).collect();
        at.sort_by(f64::total_cmp);
        at.dedup();
        match at.len() <= MARKS_MAX {
            true => at,
            false => marks(x),
        }
    }
}

/// Figures of an axis of powers that are easily read: powers of ten, and of a short axis 2 and 5 times those.
fn marks(range: &Range<f64>) -> Vec<f64> {
    let powers = (range.start.log10().floor() as i32)..=(range.end.log10().ceil() as i32);
    let digits: &[f64] = match powers.clone().count() > 4 {
        true => &[1.0],
        false => &[1.0, 2.0, 5.0],
    };
    let all = powers.flat_map(|power| digits.iter().map(move |digit| digit * 10f64.powi(power)));
    all.filter(|mark| range.contains(mark)).collect()
}

/// What is left for the plot, and the room of the names at its right.
pub(super) fn with_legend<'a>(area: &Svg<'a>) -> (Svg<'a>, Svg<'a>) {
    area.split_horizontally(SIZE.0.cast_signed() - LEGEND)
}

/// Names, each with its colour.
pub(super) fn key<'a>(area: &Svg<'_>, names: impl Iterator<Item = (&'a str, RGBColor)>) -> Drawn {
    for (row, (name, colour)) in (1..).zip(names) {
        let y = 20 + row * LEGEND_ROW;
        let line = PathElement::new([(4, y), (20, y)], colour.stroke_width(3));
        area.draw(&line)?;
        area.draw(&Text::new(name.to_owned(), (26, y - 6), ("sans-serif", 12)))?;
    }
    Ok(())
}

/// Lines and figures at two axes.
pub(super) fn mesh<X, Y>(
    chart: &mut ChartContext<'_, SVGBackend<'_>, Cartesian2d<X, Y>>,
    (x, y): (&Axis, &Axis),
) -> Drawn
where
    X: Ranged<ValueType = f64> + ValueFormatter<f64>,
    Y: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    let label = |figure: &f64| short(*figure);
    let mut mesh = chart.configure_mesh();
    mesh.max_light_lines(0)
        .x_labels(5)
        .y_labels(5)
        .bold_line_style(BLACK.mix(0.12))
        .x_desc(&x.name)
        .y_desc(&y.name)
        .x_label_formatter(&label)
        .y_label_formatter(&label)
        .draw()
}

/// Draws into a new SVG.
pub(super) fn svg(draw: impl FnOnce(&Svg<'_>) -> Drawn) -> String {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        draw(&area).expect("a string takes everything");
    }
    svg
}

/// A figure at an axis.
pub(super) fn short(figure: f64) -> String {
    let (scaled, unit) = match figure {
        small if small < 1_000.0 => (small, ""),
        thousands if thousands < 1e6 => (thousands / 1e3, "k"),
        millions => (millions / 1e6, "M"),
    };
    let digits = usize::from(scaled < 10.0 && (scaled - scaled.round()).abs() > 1e-9);
    format!("{scaled:.digits$}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_at_axes_are_short() {
        let shown = [0.5, 1.0, 20.0, 999.0, 1_000.0, 2_500.0, 64_000.0, 3e6].map(short);
        assert_eq!(shown, ["0.5", "1", "20", "999", "1k", "2.5k", "64k", "3M"]);
    }

    #[test]
    fn a_plot_without_figures_is_empty_and_one_of_zeros_is_drawn() {
        assert!(Plot::default().svg().starts_with("<svg"));
        let place = Place {
            x: 0.0,
            median: 0.0,
            min: 0.0,
            max: 0.0,
        };
        let plot = Plot {
            lines: vec![Line {
                name: "nothing".into(),
                places: vec![place],
            }],
            ..Plot::default()
        };
        let svg = plot.svg();
        assert!(svg.contains("nothing") && !svg.contains("NaN"), "{svg}");
    }

    #[test]
    fn marks_are_few_and_easily_read() {
        assert_eq!(marks(&(1.5..60.0)), [2.0, 5.0, 10.0, 20.0, 50.0]);
        assert_eq!(marks(&(0.5..5e4)), [1.0, 10.0, 100.0, 1000.0, 10000.0]);
    }
}
